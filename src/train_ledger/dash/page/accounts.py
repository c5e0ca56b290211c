"""Where did the time of the run go?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.dash.page.cost import money
from train_ledger.dash.page.markup import Child, Safe, element, join, moment, table
from train_ledger.dash.page.view import PageView
from train_ledger.ledger.accounts import CATEGORIES, Accounts
from train_ledger.render import duration

__all__ = ["accounts_part"]

_WIDE = 1000
_WINDOWS = {"1h": 3600.0, "24h": 86_400.0, "run": 0.0}
_LEAST_S = 0.05
"""Of a category that is told: of so long a run less is nothing."""


def accounts_part(view: PageView) -> Safe:
    """A bar and a table of the categories; a line while they are being made, or where there are none."""
    accounts = view.accounts
    if accounts is None or accounts.wall_s <= 0:
        none = "Being made." if accounts is None else "Nothing was heard of the run."
        return join((element("h2", "where the time went"), element("p", none, class_="dim")))
    as_of = element("span", " until ", moment(accounts.until_t, age=False), class_="dim")
    said = element("p", ", ".join(_said(accounts)), class_="dim")
    headings = ["", "time", "share", *_units(accounts)]
    rows = table(headings, [_row(accounts, name) for name in _told(accounts)], "where the time went")
    return join((element("h2", "where the time went", as_of), _bar(accounts), rows, said))


def _told(accounts: Accounts) -> list[str]:
    return [name for name in CATEGORIES if accounts.seconds.get(name, 0.0) >= _LEAST_S]


def _bar(accounts: Accounts) -> Safe:
    """The categories one after the other, as wide as their shares."""
    x, shapes = 0.0, []
    for name in _told(accounts):
        share = accounts.seconds[name] / accounts.wall_s
        title = element("title", f"{name} {share:.1%}")
        shape = {"x": f"{x:.1f}", "y": 0, "width": f"{share * _WIDE:.1f}", "height": 10}
        shapes.append(element("rect", title, class_=f"account {_css(name)}", **shape))
        x += share * _WIDE
    return element(
        "svg",
        *shapes,
        class_="accounts",
        viewBox=f"0 0 {_WIDE} 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"productive {accounts.seconds['productive'] / accounts.wall_s:.1%}",
    )


def _row(accounts: Accounts, name: str) -> Safe:
    seconds = accounts.seconds[name]
    mark = element("span", class_=f"account {_css(name)}")
    cells: list[Child] = [
        join((mark, " ", name.replace("_", "-"))),
        duration(seconds),
        f"{seconds / accounts.wall_s:.1%}",
        *_cost(accounts, name),
    ]
    return element("tr", *(element("td", cell) for cell in cells))


def _units(accounts: Accounts) -> Iterator[str]:
    if accounts.gpu_hours:
        yield "GPU-hours"
        if accounts.price_per_gpu_hour is not None:
            yield accounts.currency


def _cost(accounts: Accounts, name: str) -> Iterator[str]:
    if accounts.gpu_hours:
        hours, price = accounts.gpu_hours.get(name, 0.0), accounts.price_per_gpu_hour
        yield f"{hours:,.1f}"
        if price is not None:
            yield money(hours * price, "")


def _css(name: str) -> str:
    return name.replace("_", "-")


def _said(accounts: Accounts) -> Iterator[str]:
    for window, least_s in _WINDOWS.items():
        share = accounts.effective.get(window)
        if share is not None and accounts.wall_s > least_s:  # of a shorter run all windows say the same
            yield f"effective {share:.1%} of the {'run' if window == 'run' else f'last {window}'}"
    lost = len(accounts.interruptions)
    if lost:
        between = "" if accounts.mtbi_s is None else f", {duration(accounts.mtbi_s)} between two"
        yield f"{lost} interruption{'s' * (lost > 1)}{between}"
