"""How do several runs stand side by side?

A row a run, those in trouble first, each with the sentence that its own page begins with.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from train_ledger.dash.page.headline import Headline, headline
from train_ledger.dash.page.markup import Safe, element, join, table
from train_ledger.dash.page.view import PageView
from train_ledger.render import duration

__all__ = ["overview", "overview_parts", "together"]

Row = tuple[str, PageView]
"""The address of a run's own page, and what is known of it."""

_HEADINGS = ("run", "", "state", "step", "a step takes", "last step", "ranks", "alerts")
_TONES = ("trouble", "unsure", "fine", "ended")


def overview(rows: Sequence[Row]) -> str:
    """The whole page, complete without any script."""
    made = overview_parts(rows)
    head = join(
        (
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", made["title"]),
            element("link", rel="icon", href="static/icon.svg"),
            element("link", rel="stylesheet", href="static/page.css"),
            element("script", src="static/page.js", defer=True),
        )
    )
    body = element("section", made["runs"], id="runs")
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>'
        '<header><span class="brand">train-ledger</span><span id="link" role="status"></span></header>'
        f'<main class="all" data-t="{time.time():.3f}">{body}</main></body></html>\n'
    )


def overview_parts(rows: Sequence[Row]) -> Mapping[str, Safe]:
    """The HTML of each part by its name."""
    told = [(headline(view), address, view) for address, view in rows]
    told.sort(key=lambda row: (_TONES.index(row[0].tone), row[2].state.run))
    troubled = sum(first.tone == "trouble" for first, _, _ in told)
    mark = f"✖ {troubled} of " if troubled else ""
    return {
        "runs": join(
            (element("h2", "runs"), table(_HEADINGS, [_row(*row) for row in told], "runs", stacked=True))
        ),
        "title": join([f"{mark}{len(rows)} runs"]),
    }


def _row(first: Headline, address: str, view: PageView) -> Safe:
    state = view.state
    pages = sum(alert.level == "page" for alert in view.alerts)
    records = len(view.alerts) - pages
    ranks = f"{len(state.ranks)}" + (f" of {state.world_size}" if state.world_size else "")
    said = element("span", first.text, class_=first.tone)
    pace = "–" if state.p50_step_time_s is None else duration(state.p50_step_time_s)
    age = "–" if state.last_step_t is None else f"{duration(max(0.0, state.t - state.last_step_t))} ago"
    step = "–" if state.step is None else state.step
    figures = (
        state.state.replace("_", " "),
        step,
        pace,
        age,
        ranks,
        ", ".join(_counts(pages, records)) or "–",
    )
    return element(
        "tr",
        element("td", element("a", state.run, href=address), class_="whole"),
        element("td", said, class_="whole"),
        *(element("td", value, data_of=of) for of, value in zip(_HEADINGS[2:], figures, strict=True)),
    )


def _counts(pages: int, records: int) -> Iterable[str]:
    if pages:
        yield f"{pages} page{'s' * (pages > 1)}"
    if records:
        yield f"{records} on record"


def together(texts: Iterable[str]) -> str:
    """Several expositions as one: what is said about a metric stands once, before all its samples."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for text in texts:
        name = ""
        for line in text.splitlines():
            if line.startswith("# "):
                name = line.split(" ")[2]
                said = heads.setdefault(name, [])
                if line not in said:
                    said.append(line)
            elif line:
                samples.setdefault(name, []).append(line)
    lines = [line for name, head in heads.items() for line in (*head, *samples.get(name, ()))]
    return "".join(f"{line}\n" for line in lines)
