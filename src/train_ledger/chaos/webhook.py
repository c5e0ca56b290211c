"""Did the page arrive?

A receiver on loopback that keeps what is posted to it, for drills and tests.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

__all__ = ["Webhook"]

_LONGEST_BODY_BYTES = 1 << 20


class Webhook:
    """An HTTP receiver on a free port of loopback; `received` holds the JSON bodies in order of arrival."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_POST(self) -> None:
                length = min(int(self.headers.get("Content-Length") or 0), _LONGEST_BODY_BYTES)
                body = self.rfile.read(length)
                try:
                    received.append(json.loads(body))
                except ValueError:
                    received.append(body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                """Say nothing: the terminal belongs to the verdict."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def apprise_url(self) -> str:
        """The address as apprise takes it."""
        return f"json://127.0.0.1:{self._server.server_port}/page"

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
