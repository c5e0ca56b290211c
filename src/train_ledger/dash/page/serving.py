"""How is the page served beside whatever else the process does?"""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlencode

import uvicorn

from train_ledger.dash.page.view import PageView
from train_ledger.dash.page.web import RunPage, app
from train_ledger.dash.server import listening, shown_address

__all__ = ["DEFAULT_PORT", "serve"]

DEFAULT_PORT = 9467


@contextlib.contextmanager
def serve(
    pages: RunPage | Sequence[RunPage] | Callable[[], PageView],
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    *,
    token: Callable[[], str] = lambda: secrets.token_urlsafe(24),
    interval_s: float = 1.0,
) -> Iterator[str]:
    """Serve the page from a thread while the context lasts; yields its URL. Port 0 takes a free one.

    `pages` is what there is to show of a run, or of several; of one it may be its view alone. Where others
    than this machine can reach it, only who knows `token()` may see it; the URL then has it.

    Raises AddressUnusableError (an OSError) with one line where the address is taken or cannot be used.
    """
    with listening(host, port, "page") as socket:
        ending = threading.Event()
        is_own = ipaddress.ip_address(socket.getsockname()[0]).is_loopback
        wanted = None if is_own else token()
        server = uvicorn.Server(
            uvicorn.Config(
                app(
                    *_pages(pages),
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


def _pages(pages: RunPage | Sequence[RunPage] | Callable[[], PageView]) -> Sequence[RunPage]:
    if isinstance(pages, RunPage):
        return (pages,)
    return (RunPage(pages),) if callable(pages) else pages
