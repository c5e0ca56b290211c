"""Scrapers that hang up or dawdle are no news on the exporter's standard error."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from train_ledger.dash import scrapes
from train_ledger.dash.scrapes import serving


@pytest.fixture
def url() -> Iterator[str]:
    with serving(lambda: b"train_step 1.0\n", "127.0.0.1", 0) as url:
        yield url


def connected(url: str, said: bytes) -> socket.socket:
    where = urlsplit(url)
    client = socket.create_connection((where.hostname, where.port))
    client.sendall(said)
    return client


def hang_up(client: socket.socket) -> None:
    """Close without a farewell, as a process that is killed does."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def test_who_hangs_up_is_no_news(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    for said in (b"", b"GET /met", b"GET /metrics HTTP/1.0\r\n\r\n"):
        hang_up(connected(url, said))
    assert httpx.get(f"{url}/metrics", trust_env=False).text == "train_step 1.0\n"
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_who_says_nothing_is_let_go_without_a_word(
    url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrapes._Handler, "timeout", 0.1)
    client = connected(url, b"GET /met")
    client.settimeout(60.0)
    assert client.recv(100) == b""
    client.close()
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_a_fault_of_ours_keeps_its_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    def body() -> bytes:
        raise ZeroDivisionError

    with serving(body, "127.0.0.1", 0) as url:
        assert httpx.get(f"{url}/metrics", trust_env=False).status_code == 500
    assert "ZeroDivisionError" in capfd.readouterr().err
