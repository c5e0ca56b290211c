"""What does the page show of a keeper at this moment?

A room of its own, so that a keeper without a page loads no web server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from train_ledger.dash.page import PageView, RunPage, serve
from train_ledger.watch.aside import Aside
from train_ledger.watch.history_keeping import HistoryKeeping
from train_ledger.watch.keeper import Keeper
from train_ledger.watch.page_token import page_token

__all__ = ["serve_view", "view"]


@contextmanager
def serve_view(
    keepers: Sequence[Keeper], host: str, port: int, remarks: Sequence[Callable[[str], None]]
) -> Iterator[str]:
    """Serve the page of these keepers and keep the histories that are drawn on it; yields its URL.

    `remarks` are told of trouble, each of that with the files of the keeper of its number. Raises OSError
    where the address cannot be had.
    """
    with ExitStack() as stack:
        pages = [_page(keeper, stack, remark) for keeper, remark in zip(keepers, remarks, strict=True)]
        first = keepers[0].run_dir
        yield stack.enter_context(serve(pages, host, port, token=lambda: page_token(first, os.environ)))


def _page(keeper: Keeper, stack: ExitStack, remark: Callable[[str], None]) -> RunPage:
    """It shows the keeper within a turn, too: a verdict does not wait until its report is written."""
    history = stack.enter_context(closing(HistoryKeeping(keeper.run_dir, remark)))
    aside = stack.enter_context(closing(Aside(keeper.run_dir, keeper.config, remark)))
    return RunPage(lambda: view(keeper, aside, history), history, keeper.run_dir.reports)


def view(keeper: Keeper, aside: Aside | None = None, history: HistoryKeeping | None = None) -> PageView:
    """The page's record of a keeper, and of what was found out beside it, or could not be."""
    beside = [it.mishaps for it in (aside, history) if it is not None]
    return PageView(
        state=keeper.state,
        alerts=keeper.open_alerts,
        incidents=keeper.open_incidents,
        diagnosis=keeper.diagnosis,
        journal=keeper.tail,
        not_observed=(*keeper.not_read, *(said for it in beside for said in it.lasting)),
        of_incidents=keeper.of_incidents,
        picture=keeper.picture,
        run_path=str(keeper.run_dir.path),
        accounts=aside.accounts if aside else None,
        losses=aside.losses if aside else {},
        cannot_tell=aside.cannot_tell if aside else None,
    )
