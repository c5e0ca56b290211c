"""What does the page show of a keeper at this moment?

A room of its own, so that a keeper without a page loads no web server.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from train_ledger.dash.page import PageView, serve
from train_ledger.watch.keeper import Keeper

__all__ = ["serve_view", "view"]


def serve_view(keeper: Keeper, host: str, port: int) -> AbstractContextManager[str]:
    """Serve a keeper's page while the context lasts; yields its URL.

    Raises OSError where the address cannot be had.
    """
    return serve(lambda: view(keeper), host, port)


def view(keeper: Keeper) -> PageView:
    """The page's record of a keeper."""
    return PageView(
        state=keeper.state,
        alerts=keeper.open_alerts,
        incidents=keeper.open_incidents,
        diagnosis=keeper.diagnosis,
        journal=keeper.tail,
        not_observed=keeper.not_read,
    )
