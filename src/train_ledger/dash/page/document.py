"""How is the page laid out as a whole?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.dash.page.markup import Safe, element, join
from train_ledger.dash.page.parts import page_title, parts
from train_ledger.dash.page.plots import plotly_marker
from train_ledger.dash.page.view import PageView

__all__ = ["document"]

_LEFT, _RIGHT = (
    ("verdict", "clock", "waits", "stacks", "ranks", "rank_list", "hardware", "unobserved"),
    ("alerts", "incident", "earlier", "cost", "accounts", "journal"),
)


def document(view: PageView, *, drawn: bool = False) -> str:
    """The whole page, complete without any script; `drawn` leaves room for the curves, which need one."""
    made = parts(view)
    main = join(
        element("div", *(element("section", made[name], id=name) for name in names), class_="column")
        for names in (_LEFT, _RIGHT)
    )
    head = join(
        (
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", page_title(view)),
            element("link", rel="icon", href="static/icon.svg"),
            element("link", rel="stylesheet", href="static/page.css"),
            element("script", src="static/page.js", defer=True),
            *(_plot_scripts() if drawn else ()),
        )
    )
    links = join(
        (element("a", "state as JSON", href="api/state"), " · ", element("a", "metrics", href="metrics"))
    )
    timeline = element("section", made["timeline"], id="timeline")
    below = join([timeline, *([_plots()] if drawn else [])])
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>'
        f'<header><span class="brand">train-ledger</span> {element("span", view.state.run, class_="run")}'
        f'<span id="link" role="status"></span></header>'
        f'<main data-t="{view.state.t}">{main}</main>{below}<footer>{links}</footer></body></html>\n'
    )


def _plot_scripts() -> Iterator[Safe]:
    yield element("link", rel="stylesheet", href="static/plotly.css", id="plotly.js-style-global")
    yield element("script", src="static/plots.js", defer=True)


def _plots() -> Safe:
    """What the script draws into; without one, where the figures themselves are."""
    figures = element("a", "/api/history", href="api/history")
    without = element("noscript", element("p", "Curves need scripts; the figures: ", figures))
    return element(
        "section",
        element("h2", "curves ", element("span", class_="dim", id="read")),
        without,
        element("div", id="curves"),
        element("div", id="strips"),
        element("span", id=plotly_marker(), hidden=True),
        id="plots",
    )
