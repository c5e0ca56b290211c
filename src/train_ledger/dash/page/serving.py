"""How is the page served beside whatever else the process does?"""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import uvicorn

from train_ledger.dash.page.plots import HistorySource
from train_ledger.dash.page.view import PageView
from train_ledger.dash.page.web import app
from train_ledger.dash.server import listening, shown_address

__all__ = ["DEFAULT_PORT", "serve"]

DEFAULT_PORT = 9467


@contextlib.contextmanager
def serve(
    source: Callable[[], PageView],
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    *,
    history: HistorySource | None = None,
    reports: Path | None = None,
    token: Callable[[], str] = lambda: secrets.token_urlsafe(24),
    interval_s: float = 1.0,
) -> Iterator[str]:
    """Serve the page from a thread while the context lasts; yields its URL. Port 0 takes a free one.

    `history` is drawn on it, where it is kept; `reports` is the folder of those that can be opened from it.
    Where others than this machine can reach it, only who knows `token()` may see it; the URL then has it.

    Raises AddressUnusableError (an OSError) with one line where the address is taken or cannot be used.
    """
    with listening(host, port, "page") as socket:
        ending = threading.Event()
        is_own = ipaddress.ip_address(socket.getsockname()[0]).is_loopback
        wanted = None if is_own else token()
        server = uvicorn.Server(
            uvicorn.Config(
                app(
                    source,
                    history=history,
                    reports=reports,
                    loopback=is_own,
                    token=wanted,
                    interval_s=interval_s,
                    ending=ending,
                ),
                access_log=False,
                log_config=None,
                log_level="error",
                server_header=False,
                timeout_graceful_shutdown=3,
                lifespan="off",
            )
        )
        thread = threading.Thread(target=server.run, args=([socket],), name="page", daemon=True)
        thread.start()
        try:
            yield shown_address(socket) + ("" if wanted is None else f"/?{urlencode({'token': wanted})}")
        finally:
            ending.set()
            server.should_exit = True
            thread.join(timeout=5)
