"""What text does this address serve?

One GET by the standard library: within a time that is kept as a whole, of a size that is bounded, from http
and https alone, and from nowhere else than was asked – no redirect is followed and no proxy asked.
"""

from __future__ import annotations

import http.client
import time
from urllib.parse import SplitResult, urlsplit

__all__ = ["NotServedError", "served_text"]

_MOST_BYTES = 16 << 20
_PIECE_BYTES = 64 << 10


class NotServedError(Exception):
    """The address serves nothing that can be read; the text says which and why, `status` HTTP's own word."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


def served_text(url: str, *, timeout_s: float = 5.0, most_bytes: int = _MOST_BYTES) -> str:
    """The text at `url`; what is no UTF-8 in it becomes replacement characters. Raises NotServedError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise NotServedError(f"{url}: is no address ({error})") from error
    if parts.scheme not in ("http", "https") or not host:
        raise NotServedError(f"{url}: an address like http://127.0.0.1:9400/metrics is wanted")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        connection = kind(host, port, timeout=timeout_s)
    except http.client.InvalidURL as error:
        raise NotServedError(f"{url}: is no address ({error})") from error
    try:
        return _answer(connection, parts, url, time.monotonic() + timeout_s, most_bytes)
    except TimeoutError as error:
        raise NotServedError(f"{url}: no answer within {timeout_s:g} s") from error
    except OSError as error:
        raise NotServedError(f"{url}: {error.strerror or error}") from error
    except (http.client.HTTPException, ValueError) as error:  # ValueError: a path that no request can have
        raise NotServedError(f"{url}: answers what is no HTTP ({type(error).__name__})") from error
    finally:
        connection.close()


def _answer(
    connection: http.client.HTTPConnection, parts: SplitResult, url: str, until_s: float, most_bytes: int
) -> str:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request("GET", path, headers={"Accept": "text/plain", "User-Agent": "train-ledger"})
    response = connection.getresponse()
    if response.status != http.client.OK:
        why = f"{url}: answers {response.status} {response.reason}"
        raise NotServedError(why[:300], response.status)
    content = bytearray()
    while piece := response.read1(_PIECE_BYTES):
        content += piece
        if len(content) > most_bytes:
            raise NotServedError(f"{url}: serves more than {most_bytes >> 20} MiB")
        if time.monotonic() > until_s:
            raise TimeoutError
    if response.length:  # half a page would read as cards that are gone
        raise NotServedError(f"{url}: ended {response.length} bytes before its end")
    return content.decode("utf-8", "replace")
