"""A scrape is read as Prometheus would read it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from train_ledger.ops.lint import ScrapeError, exported_by, fetched, read_scrape

SCRAPE = """# TYPE train_restart_total counter
train_restart_total{run="r42"} 1.0
# TYPE train_step gauge
train_step{run="r42",rank="0"} 7.0
train_step{run="r42",rank="1",host="n1"} 7.0
up 1
"""


@contextmanager
def serving(status: int, body: bytes) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_each_metric_has_the_labels_of_all_its_series() -> None:
    found = exported_by([("a", SCRAPE), ("b", 'up{job="x"} 1\n')])
    assert found.metrics == {
        "train_restart_total": {"run"},
        "train_step": {"run", "rank", "host"},
        "up": {"job"},
    }
    assert found.sources == ("a", "b")


def test_a_live_exporter_is_asked_at_its_usual_path() -> None:
    with serving(200, SCRAPE.encode()) as address:
        assert fetched(address) == (f"http://{address}/metrics", SCRAPE)


def test_an_exporter_that_is_not_ready_yet() -> None:
    with serving(503, b"") as address, pytest.raises(ScrapeError, match="is not ready yet"):
        fetched(f"http://{address}")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "http://a b/",
        "http://node1:port/",
        "http://127.0.0.1:1/\nHost: other",
        "ftp://x/metrics",
        "127.0.0.1:1",
    ],
)
def test_no_other_address_is_opened(url: str) -> None:
    with pytest.raises(ScrapeError, match=r"no address|refused|not known|no HTTP|resolution"):
        fetched(url)


def test_who_answers_no_http_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_nonsense, args=(listening,))
        thread.start()
        with pytest.raises(ScrapeError, match="is no HTTP"):
            fetched(f"127.0.0.1:{listening.getsockname()[1]}")
        thread.join(5)


def _nonsense(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"\x00\xff nonsense\r\n\r\n")


def test_what_is_no_scrape(tmp_path: Path) -> None:
    with pytest.raises(ScrapeError, match="is no text of metrics"):
        exported_by([("page.html", "<html><body>Not here</body></html>\n")])
    for nothing in ("", "# TYPE x gauge\n"):
        with pytest.raises(ScrapeError, match="has no metric in it"):
            exported_by([("saved.txt", nothing)])
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ScrapeError, match="is no text"):
        read_scrape(tmp_path / "binary")
    with pytest.raises(ScrapeError, match="No such file"):
        read_scrape(tmp_path / "nowhere")


def test_a_counter_keeps_its_own_name_though_it_does_not_end_as_openmetrics_wants() -> None:
    text = '# TYPE DCGM_FI_DEV_ECC_SBE_VOL_TOTAL counter\nDCGM_FI_DEV_ECC_SBE_VOL_TOTAL{gpu="0"} 1\n'
    assert exported_by([("dcgm", text)]).metrics == {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": frozenset({"gpu"})}
