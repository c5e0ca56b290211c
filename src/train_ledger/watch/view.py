"""What does the page show of a keeper at this moment?

A room of its own, so that a keeper without a page loads no web server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from train_ledger.dash.page import PageView, RunPage, serve
from train_ledger.watch.history_keeping import HistoryKeeping
from train_ledger.watch.keeper import Keeper
from train_ledger.watch.page_token import page_token

__all__ = ["serve_view", "view"]


@contextmanager
def serve_view(
    keeper: Keeper, host: str, port: int, remark: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """Serve a keeper's page and keep the history that is drawn on it; yields its URL.

    Raises OSError where the address cannot be had.
    """
    with (
        closing(HistoryKeeping(keeper.run_dir, remark)) as history,
        serve(
            RunPage(lambda: view(keeper), history, keeper.run_dir.reports),
            host,
            port,
            token=lambda: page_token(keeper.run_dir, os.environ),
        ) as address,
    ):
        yield address


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
