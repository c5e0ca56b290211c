"""Were checkpoints far slower than usual, or did none come any more?"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from train_ledger.config import Alerts
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.signs.lines import Lines
from train_ledger.dash.backtest.signs.stretches import Grade, grade
from train_ledger.fields import read_number

__all__ = ["saves_missing", "saves_slow"]

_USUAL = 20
_FEWEST = 3
_EDGE = 0.1
_CLEAR_S = 60.0
_PAUSE = 3
"""What takes so many usual steps is a pause: a run that stands owes no checkpoint."""


class _Save(NamedTuple):
    t: float
    took_s: float | None


def _saves(lines: Lines) -> list[_Save]:
    """One for each step of each attempt that was saved, as long as any rank took."""
    found: dict[tuple[int, int | None], _Save] = {}
    for t, event in lines.saves:
        if event.name == "ckpt_saved":
            key = (event.attempt, event.step)
            told_s = [
                read_number(event.details.get("duration_s")),
                found[key].took_s if key in found else None,
            ]
            took_s = max((it for it in told_s if it is not None and it >= 0), default=None)
            found[key] = _Save(found[key].t if key in found else t, took_s)
    return sorted(found.values())


def saves_slow(lines: Lines, alerts: Alerts) -> Iterator[PastIncident]:
    """Two saves in a row that took `checkpoint_slow_factor` times as long as usual."""
    timed = [(it.t, it.took_s) for it in _saves(lines) if it.took_s is not None]
    for place in range(_FEWEST, len(timed) - 1):
        (t, took_s), (second_t, second_s) = timed[place], timed[place + 1]
        usual_s = median(took for _, took in timed[max(0, place - _USUAL) : place])
        how = _slow_grade(min(took_s, second_s), usual_s, alerts)
        if how is not Grade.NO:
            later = (it for it, took in timed[place + 2 :] if _slow_grade(took, usual_s, alerts) is Grade.NO)
            until_t = min(next(later, lines.until_t), lines.ended_t())
            yield PastIncident(
                t - took_s,
                "saves_slow",
                max(second_t, until_t) + alerts.keep_firing_s,
                clear=how is Grade.CLEAR,
            )


def _slow_grade(took_s: float, usual_s: float, alerts: Alerts) -> Grade:
    limit_s = max(alerts.checkpoint_slow_floor_s, alerts.checkpoint_slow_factor * usual_s)
    return grade(took_s, clear=limit_s * (1 + _EDGE), edge=limit_s * (1 - _EDGE))


def saves_missing(lines: Lines, alerts: Alerts) -> Iterator[PastIncident]:
    """Times in which the run went on and no save came for `checkpoint_missed_factor` usual intervals."""
    saved = [it.t for it in _saves(lines)]
    moved = sorted(t for attempt in lines.attempts.values() for t in attempt.teller().step_t)
    began = [attempt.teller().step_t[0] for attempt in lines.attempts.values() if attempt.teller().step_t]
    for place in range(_FEWEST, len(saved)):
        usual_s = median(b - a for a, b in pairwise(saved[max(0, place - _USUAL + 1) : place + 1]))
        until_t = saved[place + 1] if place + 1 < len(saved) else lines.until_t
        patience_s = max(alerts.checkpoint_missed_floor_s, alerts.checkpoint_missed_factor * usual_s)
        yield from _missing(saved[place], until_t, patience_s, moved, began, alerts)


def _missing(
    saved_t: float,
    until_t: float,
    patience_s: float,
    moved: Sequence[float],
    began: Sequence[float],
    alerts: Alerts,
) -> Iterator[PastIncident]:
    """Where steps took longer than `patience_s` after the save, or after a restart since; pauses left out."""
    since_t = max([saved_t, *(t for t in began if saved_t < t <= until_t)])
    steps = moved[bisect_right(moved, since_t) : bisect_right(moved, until_t)]
    gaps_s = [later - earlier for earlier, later in pairwise([since_t, *steps])]
    longest_s = _PAUSE * median(gaps_s) if gaps_s else 0.0
    over_s = sum(min(gap_s, longest_s) for gap_s in gaps_s) - patience_s
    if over_s > -_EDGE * patience_s:
        clear = over_s > max(_CLEAR_S, _EDGE * patience_s)
        yield PastIncident(saved_t, "saves_missing", until_t + alerts.keep_firing_s, clear=clear)
