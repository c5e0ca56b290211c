"""Which incidents had this run before, how long did they last, and what was the verdict?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from train_ledger.answer import Diagnosis
from train_ledger.dash.page.cost import money
from train_ledger.dash.page.incident import links_of
from train_ledger.dash.page.markup import Child, Safe, element, join, moment
from train_ledger.dash.page.view import PageView, read_diagnosis
from train_ledger.render import duration, verdict

__all__ = ["earlier_part"]

_MOST_ROWS = 8


@dataclass(slots=True)
class _Story:
    """What the journal's entries tell of one incident."""

    opened_t: float | None = None
    closed_t: float | None = None
    found: object = None
    alerts: str = ""


def earlier_part(view: PageView) -> Safe:
    """Those that are over, the newest first; nothing where there was none."""
    still = {incident.id for incident in view.incidents}
    told = {name: it for name, it in _stories(view.about_incidents).items() if it.closed_t is not None}
    over = [(name, story) for name, story in reversed(told.items()) if name not in still]
    if not over:
        return join([])
    rows = [_row(view, name, story) for name, story in over[:_MOST_ROWS]]
    rest = len(over) - len(rows)
    more = element("p", f"and {rest} more: train-ledger report", class_="dim") if rest > 0 else None
    return join((element("h2", "earlier incidents"), element("ul", *rows, class_="plain"), more))


def _stories(entries: Iterable[Mapping[str, Any]]) -> Mapping[str, _Story]:
    stories: dict[str, _Story] = {}
    for entry in entries:
        name, kind, t = entry.get("incident"), entry.get("kind"), entry.get("t")
        if not isinstance(name, str) or not isinstance(t, int | float):
            continue
        story = stories.setdefault(name, _Story())
        if kind == "incident_opened":
            story.opened_t, story.alerts = t, str(entry.get("alert") or "")
        elif kind == "incident_closed":
            story.closed_t = t
        elif kind == "verdict":
            story.found = entry.get("diagnosis")
    return stories


def _row(view: PageView, name: str, story: _Story) -> Safe:
    found = read_diagnosis(story.found)
    lasted = ""
    if story.opened_t is not None and story.closed_t is not None:
        lasted = f", lasted {duration(max(0.0, story.closed_t - story.opened_t))}"
    when = story.opened_t if story.opened_t is not None else story.closed_t
    head = element("span", moment(when, age=False, day=True), lasted, _lost(view, name), class_="dim")
    links = join((" – ", links_of(name))) if found is not None else None
    return element("li", head, element("p", _said(found, story), links))


def _said(found: Diagnosis | None, story: _Story) -> Child:
    if found is not None:
        return join((verdict(found), " (", element("code", found.cause), ")"))
    return f"{story.alerts or 'an alert'}; no verdict was found"


def _lost(view: PageView, name: str) -> str:
    impact = view.losses.get(name)
    if impact is None or impact.gpu_hours is None:
        return ""
    currency = view.accounts.currency if view.accounts else ""
    cost = "" if impact.cost is None else f", {money(impact.cost, currency)}"
    return f", {impact.gpu_hours:,.1f} GPU-hours{cost}"
