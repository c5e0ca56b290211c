"""How is a scrape answered?

A thread hands out text that is made elsewhere; nobody who asks can keep the one who makes it waiting.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client.exposition import CONTENT_TYPE_LATEST, ThreadingWSGIServer

from train_ledger.dash.server import listening, shown_address

__all__ = ["serving"]

_TURN_S = 0.001
"""A scrape needs the interpreter some ten times, and waits each time for the thread that reads lines."""

_END_S = 0.5
"""Within this time the server sees that it is to end; a shorter one costs an idle exporter more."""

Body = Callable[[], bytes | None]


@contextlib.contextmanager
def serving(body: Body, host: str, port: int) -> Iterator[str]:
    """Serve what `body` says (None: it is not ready) as /metrics, and /healthz; yields the URL.

    Raises AddressUnusableError where the address is taken or cannot be used.
    """
    with listening(host, port, "metrics") as socket_, _turns_of(_TURN_S):
        server = _Server(socket_, _App(body))
        thread = threading.Thread(target=server.serve_forever, args=(_END_S,), name="metrics", daemon=True)
        thread.start()
        try:
            yield shown_address(socket_)
        finally:
            server.shutdown()
            thread.join()


class _App:
    def __init__(self, body: Body) -> None:
        self._body = body

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, body = self._page(environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", ""))
        kind = CONTENT_TYPE_LATEST if status.startswith("200") else "text/plain; charset=utf-8"
        headers = [
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("X-Content-Type-Options", "nosniff"),
        ]
        start_response(status, headers)
        return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else body]

    def _page(self, method: str, path: str) -> tuple[str, bytes]:
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", b"only GET and HEAD\n"
        if path == "/healthz":
            return "200 OK", b"alive\n"
        if path != "/metrics":
            return "404 Not Found", b"there are /metrics and /healthz\n"
        body = self._body()
        if body is None:
            return (
                "503 Service Unavailable",
                b"not ready: the files have not been read up to their ends yet\n",
            )
        return "200 OK", body


@contextlib.contextmanager
def _turns_of(turn_s: float) -> Iterator[None]:
    """Let threads take turns more often than every 5 ms, as Python does by itself."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(turn_s)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)


class _Handler(WSGIRequestHandler):
    timeout = 30

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are no news."""


class _Server(ThreadingWSGIServer):
    """Serves on a socket that listens already."""

    def __init__(self, listener: socket.socket, app: Callable[..., Iterable[bytes]]) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        host, port = listener.getsockname()[:2]
        self.server_name, self.server_port = str(host), int(port)
        self.setup_environ()
        self.set_app(app)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """One who hangs up, or is too slow, is no fault of ours; what is one keeps its traceback."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
