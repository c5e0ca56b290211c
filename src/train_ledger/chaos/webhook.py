"""Did the page arrive?

A receiver on loopback that keeps what is posted to it, for drills and tests.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

__all__ = ["Arrival", "Webhook"]

_LONGEST_BODY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message: when it was there (unix seconds) and its body, as bytes where it is no JSON."""

    t: float
    body: Any


class Webhook:
    """An HTTP receiver on a free port of loopback; `arrivals` holds what came, in order."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        arrivals = self.arrivals

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_POST(self) -> None:
                length = min(int(self.headers.get("Content-Length") or 0), _LONGEST_BODY_BYTES)
                text = self.rfile.read(length)
                try:
                    body = json.loads(text)
                except ValueError:
                    body = text
                arrivals.append(Arrival(time.time(), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                """Say nothing: the terminal belongs to the verdict."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def received(self) -> list[Any]:
        """The bodies alone."""
        return [arrival.body for arrival in self.arrivals]

    @property
    def url(self) -> str:
        """The address for who posts JSON of its own, as Alertmanager does."""
        return f"http://127.0.0.1:{self._server.server_port}/page"

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
