"""States and alerts stand on one axis of time, and nothing in the journal does anything else."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

from dash.page.views import HOSTILE, healthy
from train_ledger.dash.page import PageView
from train_ledger.dash.page.timeline import timeline_part

T = healthy().state.t


def with_journal(*entries: dict[str, Any], t: float = T) -> PageView:
    view = healthy()
    return replace(view, state=replace(view.state, t=t), journal=entries)


def alert(kind: str, t: float, name: str = "TrainingStepStalled", **labels: str) -> dict[str, Any]:
    transition = {"alert": {"labels": {"run": "r42", **labels}}}
    return {"t": t, "kind": kind, "alert": name, "level": "page", "summary": name, "transition": transition}


def rects(html: str) -> list[tuple[str, float, float]]:
    """(class, x, width) of each bar, in the order in which they are drawn."""
    found = []
    for attributes in re.findall(r"<rect ([^>]*)>", html):
        told = dict(re.findall(r'(\w+)="([^"]*)"', attributes))
        found.append((told["class"], float(told["x"]), float(told["width"])))
    return found


def test_nothing_yet() -> None:
    assert "Nothing has happened yet." in timeline_part(with_journal())


def test_an_alert_lasts_until_it_is_resolved_or_until_now() -> None:
    html = timeline_part(
        with_journal(
            {"t": T - 1000, "kind": "keeper_started"},
            alert("alert_fired", T - 800),
            alert("alert_resolved", T - 600),
            alert("alert_fired", T - 100, "GpuXidError", host="n0"),
        )
    )
    bars = [bar for bar in rects(html) if bar[0] == "trouble"]
    assert len(bars) == 2
    (_, first_x, first_wide), (_, second_x, second_wide) = bars
    assert first_wide == 2 * second_wide or abs(first_wide - 2 * second_wide) < 5
    assert second_x > first_x + first_wide


def test_the_state_is_one_row_without_gaps() -> None:
    html = timeline_part(
        with_journal(
            {"t": T - 900, "kind": "keeper_started"},
            {"t": T - 600, "kind": "state_changed", "state": "stalled", "before": "running"},
            {"t": T - 300, "kind": "state_changed", "state": "running", "before": "stalled"},
        )
    )
    states = [bar for bar in rects(html) if bar[0] in ("fine", "trouble")]
    assert [bar[0] for bar in states] == ["fine", "trouble", "fine"]
    for before, after in pairwise(states):
        assert abs(before[1] + before[2] - after[1]) < 0.2


def test_a_second_later_it_is_the_same_picture() -> None:
    entries = ({"t": T - 50_000, "kind": "keeper_started"},)
    assert timeline_part(with_journal(*entries, t=T // 64 * 64 + 20)) == timeline_part(
        with_journal(*entries, t=T // 64 * 64 + 21)
    )


def test_no_more_than_a_day_is_shown_and_ticks_stay_few() -> None:
    html = timeline_part(
        with_journal({"t": T - 10 * 86_400, "kind": "keeper_started"}, alert("alert_fired", T - 3600))
    )
    assert 1 <= html.count('class="tick"') / 2 <= 8
    assert all(x >= 190 for _, x, _ in rects(html))


def test_what_makes_no_sense_is_left_out() -> None:
    odd = ({"t": "yesterday", "kind": "alert_fired"}, {"kind": "state_changed"}, {"t": T, "kind": 5})
    timeline_part(with_journal(*odd))
    html = timeline_part(with_journal(alert("alert_fired", T - 10, HOSTILE)))
    assert HOSTILE not in html
