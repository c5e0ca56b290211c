"""How is a rank dumped that cannot answer itself?

Where Python's lock is held in C no thread of the rank runs, but torch's worker server answers on threads of
its own: POST /handler/fr_trace_json gives the Flight Recorder, without frames. Nothing else is asked of it.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from pathlib import Path

from train_ledger.run_dir import write_atomically

__all__ = ["LONGEST_ANSWER_S", "WorkerServerError", "fetch_dump"]

LONGEST_ANSWER_S = 30.0
_TIMEOUT_S = 5.0
_MOST_BYTES = 256 << 20
"""Without frames an entry is some hundred bytes."""


class WorkerServerError(Exception):
    """The server did not give a dump; the text says why."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def fetch_dump(address: str, file: Path, *, within_s: float = LONGEST_ANSWER_S) -> None:
    """Write the Flight Recorder of the rank whose server answers at `address` into `file`.

    `address` is as run_start says it: "unix:/path" or "tcp:127.0.0.1:port"; another host is never asked.
    Raises WorkerServerError, after `within_s` seconds for one that answers without end.
    """
    connection = _connection(address)
    try:
        body = _asked(connection, within_s)
        write_atomically(file, body)
    except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: no path that can be
        raise WorkerServerError(f"the worker server at {address}: {error}") from error
    finally:
        connection.close()


def _asked(connection: http.client.HTTPConnection, within_s: float) -> bytes:
    """What it answers; the timeout of the socket alone would bound each word of it, not the whole."""
    deadline = time.monotonic() + within_s
    connection.connect()
    timer = threading.Timer(within_s, _hang_up, (connection.sock,))
    timer.start()
    try:
        connection.request("POST", "/handler/fr_trace_json")
        response = connection.getresponse()
        body = response.read(_MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() >= deadline:
            raise TimeoutError(f"no whole answer within {within_s:g} s") from error
        raise
    finally:
        timer.cancel()
    if time.monotonic() >= deadline:
        raise TimeoutError(f"no whole answer within {within_s:g} s")
    if response.status != 200 or not body:
        raise WorkerServerError(f"the worker server answered {response.status} with {len(body)} bytes")
    if len(body) > _MOST_BYTES:
        raise WorkerServerError(f"the worker server answered more than {_MOST_BYTES >> 20} MiB")
    return body


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _connection(address: str) -> http.client.HTTPConnection:
    kind, _, place = address.partition(":")
    if kind == "unix":
        return _UnixConnection(place)
    host, _, port = place.rpartition(":")
    if kind == "tcp" and host == "127.0.0.1" and port.isdecimal() and 0 < int(port[:6]) < 1 << 16:
        return http.client.HTTPConnection(host, int(port[:6]), timeout=_TIMEOUT_S)
    raise WorkerServerError(f"{address!r} is no address of this host")
