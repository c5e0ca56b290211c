"""An address is asked once, within a time, for no more than it may say."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from train_ledger.sources.hardware.served_text import NotServedError, served_text


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.recv(4096)
            try:
                answer(connection)
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/metrics"
    finally:
        listening.close()
        thread.join(60)


def said(status: str, body: bytes = b"", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def test_the_text_of_a_page() -> None:
    with server(lambda it: it.sendall(said("200 OK", "a 1\nbé 2\n".encode()))) as url:
        assert served_text(url) == "a 1\nbé 2\n"


def test_a_redirect_is_not_followed() -> None:
    with (
        server(lambda it: it.sendall(said("302 Found", headers="Location: http://127.0.0.1:1/\r\n"))) as url,
        pytest.raises(NotServedError, match="302"),
    ):
        served_text(url)


def test_a_server_that_says_one_byte_at_a_time_is_left() -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:  # until it is hung up on
            connection.sendall(b"x")
            time.sleep(0.1)

    with server(drip) as url, pytest.raises(NotServedError, match=r"no answer within 0\.5 s"):
        served_text(url, timeout_s=0.5)


def test_a_server_that_says_nothing_is_left() -> None:
    with (
        server(lambda it: it.recv(1)) as url,
        pytest.raises(NotServedError, match="no answer within"),
    ):
        served_text(url, timeout_s=0.2)


def test_too_much_is_not_taken() -> None:
    with (
        server(lambda it: it.sendall(said("200 OK", b"x" * 300_000))) as url,
        pytest.raises(NotServedError, match="more than"),
    ):
        served_text(url, most_bytes=100_000)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "127.0.0.1:9400", "http://", "ftp://127.0.0.1/", "http://[::1", "http://h:99999/"],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(NotServedError):
        served_text(url)


def test_nobody_there_is_said_in_one_line() -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with pytest.raises(NotServedError, match="refused"):
        served_text(f"http://127.0.0.1:{port}/metrics")


def test_what_is_no_http_is_said() -> None:
    with (
        server(lambda it: it.sendall(b"\0\1\2 no http\r\n\r\n")) as url,
        pytest.raises(NotServedError, match="no HTTP"),
    ):
        served_text(url)


def test_half_a_page_is_none() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nDCGM_FI_DEV_GPU_TEMP 60\n"
    with server(lambda it: it.sendall(half)) as url, pytest.raises(NotServedError, match="before its end"):
        served_text(url)


@pytest.mark.parametrize("url", ["http://a b/", "http://[::1", "http://node1:port/", "http://", "node1:9400"])
def test_what_is_no_address_is_not_asked(url: str) -> None:
    with pytest.raises(NotServedError, match="address"):
        served_text(url)
