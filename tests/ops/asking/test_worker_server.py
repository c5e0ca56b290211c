import contextlib
import http.server
import socketserver
import threading
import time

import pytest

from train_ledger.ops.asking.worker_server import WorkerServerError, fetch_dump


class Handler(http.server.BaseHTTPRequestHandler):
    answer = (200, b'{"version":"2.10"}')

    def do_POST(self):
        status, body = self.answer if self.path == "/handler/fr_trace_json" else (404, b"")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "a rank"

    def log_message(self, *_):
        pass


class UnixServer(socketserver.UnixStreamServer):
    pass


@contextlib.contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_dump_is_fetched_through_a_socket_file(tmp_path):
    path = str(tmp_path / "rank_3.sock")
    with serving(UnixServer(path, Handler)):
        fetch_dump(f"unix:{path}", tmp_path / "comm_traces" / "rank_3")
    assert (tmp_path / "comm_traces" / "rank_3").read_bytes() == b'{"version":"2.10"}'


def test_a_dump_is_fetched_through_a_port_of_loopback(tmp_path):
    server = socketserver.TCPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        fetch_dump(f"tcp:127.0.0.1:{server.server_address[1]}", tmp_path / "rank_3")
    assert (tmp_path / "rank_3").stat().st_size > 0


@pytest.mark.parametrize(
    "address", ["tcp:10.0.0.1:80", "tcp:example.org:80", "http://127.0.0.1/", "tcp:127.0.0.1:x", ""]
)
def test_no_other_host_is_ever_asked(tmp_path, address):
    with pytest.raises(WorkerServerError, match="no address of this host"):
        fetch_dump(address, tmp_path / "rank_3")


def test_a_server_that_is_gone_or_refuses_is_told_in_words(tmp_path, monkeypatch):
    with pytest.raises(WorkerServerError, match="the worker server at unix"):
        fetch_dump(f"unix:{tmp_path}/rank_3.sock", tmp_path / "rank_3")
    monkeypatch.setattr(Handler, "answer", (500, b""))
    path = str(tmp_path / "s")
    with serving(UnixServer(path, Handler)), pytest.raises(WorkerServerError, match="answered 500"):
        fetch_dump(f"unix:{path}", tmp_path / "rank_3")
    assert not (tmp_path / "rank_3").exists()


class Endless(Handler):
    """Each word comes in time, and the answer never ends."""

    begins = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    goes_on = b"x"

    def do_POST(self):
        with contextlib.suppress(OSError):
            self.wfile.write(self.begins)
            while True:
                self.wfile.write(self.goes_on)
                time.sleep(0.02)


class Continuing(Endless):
    begins = goes_on = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize("handler", [Endless, Continuing])
def test_an_answer_without_end_is_given_up(tmp_path, handler):
    path = str(tmp_path / "rank_3.sock")
    with (
        serving(UnixServer(path, handler)),
        pytest.raises(WorkerServerError, match=r"no whole answer within 0\.5 s"),
    ):
        fetch_dump(f"unix:{path}", tmp_path / "rank_3", within_s=0.5)
    assert not (tmp_path / "rank_3").exists()


@pytest.mark.parametrize(
    "address", ["tcp:127.0.0.1:" + "9" * 6000, "tcp:127.0.0.1:0", "unix:/\ud800", "unix:"]
)
def test_an_address_that_cannot_be_is_told(tmp_path, address):
    with pytest.raises(WorkerServerError):
        fetch_dump(address, tmp_path / "rank_3")
