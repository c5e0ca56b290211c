"""What does Prometheus answer to a query?

One POST to its HTTP API by the standard library: within a time that is kept as a whole, of a size that is
bounded, from nowhere else than was asked – no redirect is followed and no proxy asked.
Format: prometheus.io/docs/prometheus/latest/querying/api.
"""

from __future__ import annotations

import contextlib
import http.client
import math
import socket
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from train_ledger.sources.prometheus.address import Address, PrometheusError

__all__ = ["Prometheus", "Sample"]

_MOST_BYTES = 128 << 20
_ERROR_BYTES = 64 << 10
_PIECE_BYTES = 256 << 10
_LONGEST_WHY = 300


class Sample(NamedTuple):
    """One value of one series; `labels` without the name, `t` unix seconds by Prometheus' clock."""

    name: str
    labels: Mapping[str, str]
    t: float
    value: float


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    resultType: str = ""  # noqa: N815  (as the API writes it)
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct):
    status: str = ""
    data: _Data | None = None
    error: str = ""
    errorType: str = ""  # noqa: N815


_decode = msgspec.json.Decoder(_Answer).decode
_decode_series = msgspec.json.Decoder(list[_Series]).decode


class Prometheus:
    """Asks the Prometheus at `url`, each time for `timeout_s` seconds at most and `most_bytes` of answer.

    Raises PrometheusError for an address that is none.
    """

    def __init__(self, url: str, *, timeout_s: float = 10.0, most_bytes: int = _MOST_BYTES) -> None:
        self.address = Address.of(url)
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes

    def query(self, promql: str, t: float | None = None) -> list[Sample]:
        """The instant vector of a query at `t` (unix seconds; None: now, by Prometheus' clock).

        Raises PrometheusError where it does not answer in time, is none, or refuses the query.
        """
        asked = {"query": promql, "timeout": f"{self._timeout_s:g}s"}
        if t is not None:
            asked["time"] = f"{t:.3f}"
        body = self._posted("/api/v1/query", urlencode(asked).encode())
        return [*map(_sample, self._vector(body))]

    def _vector(self, body: bytes) -> list[_Series]:
        try:
            answer = _decode(body)
            if answer.status != "success" or answer.data is None:
                raise PrometheusError(f"{self.address.shown}: {_word(answer) or 'does not say success'}")
            return _decode_series(answer.data.result) if answer.data.resultType == "vector" else []
        except (msgspec.DecodeError, RecursionError):
            raise PrometheusError(self._is_none("its answer is not that of one")) from None

    def _posted(self, path: str, form: bytes) -> bytes:
        kind = http.client.HTTPSConnection if self.address.scheme == "https" else http.client.HTTPConnection
        where, until_s = self.address.shown, time.monotonic() + self._timeout_s
        try:
            connection = kind(self.address.host, self.address.port, timeout=self._timeout_s)
        except http.client.InvalidURL:
            raise PrometheusError(self._is_none("its address is none")) from None
        ending = threading.Timer(self._timeout_s, _hang_up, [connection])
        ending.daemon = True
        ending.start()
        try:
            return self._answered(connection, path, form, until_s)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, TimeoutError) or time.monotonic() > until_s:
                raise PrometheusError(f"{where}: no answer within {self._timeout_s:g} s") from None
            if isinstance(error, OSError):
                why = error.strerror or type(error).__name__
                raise PrometheusError(f"{where}: is not reached ({why}); is Prometheus there?") from None
            raise PrometheusError(self._is_none(f"it answers no HTTP, {type(error).__name__}")) from None
        finally:
            ending.cancel()
            connection.close()

    def _answered(
        self, connection: http.client.HTTPConnection, path: str, form: bytes, until_s: float
    ) -> bytes:
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": "train-ledger",
            **self.address.headers,
        }
        connection.request("POST", self.address.path + path, form, headers)
        response = connection.getresponse()
        _want_in_time(until_s)
        is_answer = response.status == http.client.OK
        content = self._read(response, self._most_bytes if is_answer else _ERROR_BYTES, until_s)
        if not is_answer:
            raise PrometheusError(self._refused(response, content))
        return content

    def _read(self, response: http.client.HTTPResponse, most_bytes: int, until_s: float) -> bytes:
        content = bytearray()
        while piece := response.read1(_PIECE_BYTES):
            content += piece
            if len(content) > most_bytes:
                size = f"{most_bytes >> 20} MiB" if most_bytes >> 20 else f"{most_bytes} bytes"
                raise PrometheusError(f"{self.address.shown}: answers more than {size}, which is not read")
            _want_in_time(until_s)
        _want_in_time(until_s)
        if response.length:
            raise PrometheusError(f"{self.address.shown}: its answer ended {response.length} bytes too early")
        return bytes(content)

    def _refused(self, response: http.client.HTTPResponse, content: bytes) -> str:
        status = f"{response.status} {response.reason}"[:_LONGEST_WHY]
        if response.status in (401, 403):
            return f"{self.address.shown}: answers {status}; give http://USER:PASSWORD@… in the address"
        try:
            why = _word(_decode(content))
        except (msgspec.DecodeError, RecursionError):
            why = ""
        return f"{self.address.shown}: {why}" if why else self._is_none(f"it answers {status}")

    def _is_none(self, why: str) -> str:
        return f"{self.address.shown}: is no Prometheus ({why})"


def _hang_up(connection: http.client.HTTPConnection) -> None:
    """A socket's own timeout begins anew with every byte that drips in; this one ends them all."""
    if isinstance(connection.sock, socket.socket):
        with contextlib.suppress(OSError):  # closed meanwhile
            connection.sock.shutdown(socket.SHUT_RDWR)


def _want_in_time(until_s: float) -> None:
    if time.monotonic() > until_s:
        raise TimeoutError


def _word(answer: _Answer) -> str:
    """Its own words for what is wrong."""
    return ": ".join(it for it in (answer.errorType, answer.error) if it)[:_LONGEST_WHY]


def _sample(series: _Series) -> Sample:
    name = series.metric.pop("__name__", "")
    t, text = series.value
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    return Sample(name, series.metric, t, value)
