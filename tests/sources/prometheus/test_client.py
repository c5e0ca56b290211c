"""What is asked of a Prometheus, and what is said where it is none."""

from __future__ import annotations

import http.server
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs

import pytest

from train_ledger.sources.prometheus import Address, Prometheus, PrometheusError, Sample

Answer = tuple[int, bytes]


@contextmanager
def served(answer: Callable[[str, dict[str, list[str]], dict[str, str]], Answer]) -> Iterator[str]:
    """An address at which this answers each POST; it is given the path, the form and the headers."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, body = answer(self.path, form, dict(self.headers))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def vector(*series: tuple[dict[str, str], str]) -> bytes:
    result = [{"metric": metric, "value": [1000.5, value]} for metric, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def test_samples_have_their_labels_and_every_kind_of_number() -> None:
    body = vector(
        ({"__name__": "train_step", "rank": "5"}, "41"),
        ({"rank": "6"}, "NaN"),
        ({"rank": "7"}, "+Inf"),
        ({"rank": "8"}, "what"),
    )
    with served(lambda *_: (200, body)) as where:
        first, nan, inf, odd = Prometheus(f"http://{where}").query("train_step")
    assert first == Sample("train_step", {"rank": "5"}, 1000.5, 41.0)
    assert math.isnan(nan.value)
    assert inf.value == math.inf
    assert math.isnan(odd.value)


def test_the_query_the_time_and_the_path_before_api_are_sent() -> None:
    seen = []

    def answer(path: str, form: dict[str, list[str]], headers: dict[str, str]) -> Answer:
        seen.append((path, form["query"], form["time"], headers.get("Authorization")))
        return 200, vector()

    with served(answer) as where:
        assert Prometheus(f"http://me:pass%20word@{where}/base/").query('up{run="a"}', 12.5) == []
    ((path, query, t, word),) = seen
    assert (path, query, t) == ("/base/api/v1/query", ['up{run="a"}'], ["12.500"])
    assert word == "Basic bWU6cGFzcyB3b3Jk"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, b"<html>Grafana</html>"), "is no Prometheus (its answer is not that of one)"),
        ((200, b"[" * 100_000), "is no Prometheus"),
        ((200, b'{"status": "error", "errorType": "bad_data", "error": "no"}'), "bad_data: no"),
        ((200, b"{}"), "does not say success"),
        ((200, b'{"status": "success", "data": {"resultType": "vector", "result": 7}}'), "is no Prometheus"),
        ((400, b'{"status": "error", "errorType": "bad_data", "error": "parse error"}'), "parse error"),
        ((404, b"not here"), "is no Prometheus (it answers 404 Not Found)"),
        ((302, b""), "it answers 302 Found"),
        ((401, b""), "answers 401 Unauthorized; give http://USER:PASSWORD@"),
        ((503, b"Service Unavailable"), "503"),
    ],
)
def test_what_is_no_answer_is_one_line_without_the_password(answer: Answer, said: str) -> None:
    with served(lambda *_: answer) as where, pytest.raises(PrometheusError) as told:
        Prometheus(f"http://me:secret@{where}").query("up")
    assert said in str(told.value)
    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)


def test_an_answer_that_is_too_long_is_not_read() -> None:
    body = vector(*[({"rank": str(rank)}, "1") for rank in range(1000)])
    with (
        served(lambda *_: (200, body)) as where,
        pytest.raises(PrometheusError, match="more than 4096 bytes"),
    ):
        Prometheus(f"http://{where}", most_bytes=4096).query("up")


def test_nobody_is_waited_for_longer_than_said() -> None:
    may_answer = threading.Event()

    def slow(*_: object) -> Answer:
        may_answer.wait(120)
        return 200, vector()

    with served(slow) as where:
        try:
            with pytest.raises(PrometheusError, match=r"no answer within 0\.2 s"):
                Prometheus(f"http://{where}", timeout_s=0.2).query("up")
        finally:
            may_answer.set()


@pytest.mark.parametrize("begun", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_nor_where_a_byte_comes_now_and_then(begun: bytes) -> None:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            client, _ = server.accept()
            with client, suppress(OSError):  # which is what is wanted: it was hung up on
                client.recv(4096)
                client.sendall(begun)
                while not over.wait(0.1):
                    client.sendall(b" ")

        threading.Thread(target=drip, daemon=True).start()
        began_s = time.monotonic()
        try:
            with pytest.raises(PrometheusError, match=r"no answer within 0\.4 s"):
                Prometheus(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=0.4).query("up")
            assert time.monotonic() - began_s < 60
        finally:
            over.set()


def test_where_nobody_listens_it_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(PrometheusError, match=r"is not reached .*is Prometheus there"):
        Prometheus(f"http://me:secret@127.0.0.1:{port}").query("up")


def test_a_server_that_speaks_no_http_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            client, _ = server.accept()
            client.recv(4096)
            client.sendall(b"SSH-2.0-OpenSSH_9.0\r\n")
            client.close()

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(PrometheusError, match="is no Prometheus"):
            Prometheus(f"http://127.0.0.1:{server.getsockname()[1]}").query("up")


@pytest.mark.parametrize(
    "url",
    ["", "prometheus:9090", "ftp://me:secret@x", "http://", "http://x:99999", "http://a b/", "http://[::1"],
)
def test_an_address_that_is_none_is_not_repeated(url: str) -> None:
    with pytest.raises(PrometheusError, match="an address like") as told:
        Prometheus(url)
    assert "secret" not in str(told.value)


def test_an_address_shows_neither_name_nor_password() -> None:
    address = Address.of("https://me:secret@[fd00::1]:9443/p/")
    assert address.shown == "https://[fd00::1]:9443/p"
    assert "secret" not in repr(address)
    assert "bWU6" not in repr(address)
