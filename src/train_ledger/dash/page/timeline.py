"""What happened when, on one axis: states, alerts, and what was done about them?

Drawn from the journal's newest entries alone, so that it stands there without any script.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from train_ledger.dash.page.markup import Safe, element, join, scrolling
from train_ledger.dash.page.view import PageView

__all__ = ["timeline_part"]

_LONGEST_S = 86_400.0
_SHORTEST_S = 600.0
_WIDE, _LABEL, _ROW = 1000, 190, 20
_MOST_ROWS = 12
_STEPS = 300
_TICKS_S = (60, 300, 600, 1800, 3600, 7200, 14_400, 28_800)
_MOST_TICKS = 8
_TONES = {
    "running": "fine",
    "finished": "ended",
    "starting": "ended",
    "recovering": "unsure",
    "restarting": "unsure",
}
_MARKS = {
    "keeper_started": "keeper started",
    "verdict": "verdict",
    "notification_done": "told",
    "recovered": "recovered",
    "hook_done": "hook",
}


@dataclass(frozen=True, slots=True)
class _Bar:
    since_t: float
    until_t: float
    tone: str
    said: str


def timeline_part(view: PageView) -> Safe:
    """The heading and the picture; a line where there is nothing to draw yet."""
    began_t, until_t = _window(view)
    rows = [row for row in _rows(view, until_t) if any(bar.until_t >= began_t for bar in row[1])]
    if not rows:
        return join((element("h2", "timeline"), element("p", "Nothing has happened yet.", class_="dim")))
    height = _ROW * (len(rows) + 1)
    drawn = [_drawn(place, name, bars, began_t, until_t) for place, (name, bars) in enumerate(rows)]
    picture = element(
        "svg",
        *_ticks(began_t, until_t, height),
        *drawn,
        class_="timeline",
        viewBox=f"0 0 {_WIDE} {height}",
        role="img",
        aria_label="states and alerts over time",
    )
    said = f" {_shown(began_t)} to {_shown(until_t)}"
    heading = element("h2", "timeline", element("span", said, class_="dim"))
    return join((heading, element("div", picture, **scrolling("timeline"))))


def _window(view: PageView) -> tuple[float, float]:
    """Its end moves by parts of its length, so that not every second makes another picture."""
    times = [t for entry in view.journal if isinstance(t := entry.get("t"), int | float)]
    first_t = min(times, default=view.state.t)
    length_s = min(_LONGEST_S, max(_SHORTEST_S, view.state.t - first_t))
    part_s = 2.0 ** int(math.log2(length_s / _STEPS))
    until_t = (view.state.t // part_s + 1) * part_s
    return max(min(first_t, until_t - _SHORTEST_S), until_t - _LONGEST_S), until_t


def _rows(view: PageView, until_t: float) -> list[tuple[str, list[_Bar]]]:
    alerts: dict[str, list[_Bar]] = {}
    for bar_of, bar in _alert_bars(view.journal, until_t):
        alerts.setdefault(bar_of, []).append(bar)
    return [
        ("state", [*_state_bars(view, until_t)]),
        *list(alerts.items())[-_MOST_ROWS:],
        ("keeper", [*_marks(view.journal)]),
    ]


def _state_bars(view: PageView, until_t: float) -> Iterator[_Bar]:
    changes = [
        (entry["t"], str(entry.get("state")), str(entry.get("before") or ""))
        for entry in view.journal
        if entry.get("kind") == "state_changed" and isinstance(entry.get("t"), int | float)
    ]
    if changes and changes[0][2]:
        first_t = min(entry["t"] for entry in view.journal if isinstance(entry.get("t"), int | float))
        changes.insert(0, (first_t, changes[0][2], ""))
    ends = [*(t for t, _, _ in changes[1:]), until_t]
    for (t, state, _), end_t in zip(changes, ends, strict=False):
        yield _Bar(t, end_t, _TONES.get(state, "trouble"), state)


def _alert_bars(journal: Iterable[Mapping[str, Any]], until_t: float) -> Iterator[tuple[str, _Bar]]:
    open_since: dict[tuple[str, str], tuple[float, str, str]] = {}
    for entry in journal:
        t, kind = entry.get("t"), entry.get("kind")
        if not isinstance(t, int | float) or kind not in ("alert_fired", "alert_resolved"):
            continue
        if not entry.get("alert"):
            continue
        key = (str(entry.get("alert")), _labels(entry))
        if kind == "alert_fired":
            tone = "trouble" if entry.get("level") == "page" and not entry.get("inhibited") else "unsure"
            open_since[key] = (t, tone, str(entry.get("summary", key[0])))
        elif key in open_since:
            since_t, tone, said = open_since.pop(key)
            yield key[0], _Bar(since_t, t, tone, said)
    for (name, _), (since_t, tone, said) in open_since.items():
        yield name, _Bar(since_t, until_t, tone, said)


def _labels(entry: Mapping[str, Any]) -> str:
    transition = entry.get("transition")
    alert = transition.get("alert") if isinstance(transition, Mapping) else None
    labels = alert.get("labels") if isinstance(alert, Mapping) else None
    return str(sorted(labels.items())) if isinstance(labels, Mapping) else ""


def _marks(journal: Iterable[Mapping[str, Any]]) -> Iterator[_Bar]:
    for entry in journal:
        t, said = entry.get("t"), _MARKS.get(str(entry.get("kind")))
        if said is not None and isinstance(t, int | float):
            yield _Bar(t, t, "mark", f"{said} {_shown(t)}")


# -- drawn


def _drawn(place: int, name: str, bars: Iterable[_Bar], began_t: float, until_t: float) -> Safe:
    y = _ROW * place
    label = element("text", name, x=0, y=y + 14)
    scale = (_WIDE - _LABEL) / (until_t - began_t)
    shapes = []
    for bar in bars:
        if bar.until_t < began_t:
            continue
        x = _LABEL + (max(bar.since_t, began_t) - began_t) * scale
        width = max(2.0, (min(bar.until_t, until_t) - max(bar.since_t, began_t)) * scale)
        shape = {"x": f"{x:.1f}", "y": y + 4, "width": f"{width:.1f}", "height": 12, "class_": bar.tone}
        shapes.append(element("rect", element("title", bar.said), **shape))
    return element("g", label, *shapes)


def _ticks(began_t: float, until_t: float, height: int) -> Iterator[Safe]:
    length_s = until_t - began_t
    every_s = next((it for it in _TICKS_S if length_s / it <= _MOST_TICKS), _TICKS_S[-1])
    t = (began_t // every_s + 1) * every_s
    while t < until_t:
        x = f"{_LABEL + (t - began_t) * (_WIDE - _LABEL) / length_s:.1f}"
        yield element("line", x1=x, x2=x, y1=0, y2=height - _ROW, class_="tick")
        yield element("text", _shown(t), x=x, y=height - 5, class_="tick")
        t += every_s


def _shown(t: float) -> str:
    try:
        return f"{datetime.fromtimestamp(t, UTC):%H:%MZ}"
    except (OverflowError, OSError, ValueError):
        return "?"
