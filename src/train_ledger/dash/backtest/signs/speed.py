"""Were steps slower than they had been, or the GPUs less used than is usual?

By the raw figures of the rank that told most: medians of the last minutes beside those of an earlier hour,
and how many steps of half an hour had less mfu than the limit. Looked at every minute.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from train_ledger.config import Alerts
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.signs.lines import AttemptLines, Lines
from train_ledger.dash.backtest.signs.stretches import Grade, Stretch, grade, stretches

__all__ = ["mfu_low", "slower"]

_LOOK_S = 60.0
_CLEAR_S = 120.0
_FIRST_STEPS = 10
_MOST_STRIDE = 100
_FEWEST = 3
_EDGE = 0.05
_MFU_EDGE = 0.03
_MOST_OF_ALL = 0.9
_LEAST_SHARE = 0.02


class _Pace(NamedTuple):
    """A step that took so long; `t` is when it was completed."""

    t: float
    took_s: float


def slower(lines: Lines, alerts: Alerts) -> Iterator[PastIncident]:
    """Stretches in which the usual step took `step_regressed_factor` times as long as in the hour before."""
    size: int | None = None
    earlier: list[_Pace] = []
    for attempt in lines.attempts.values():
        if attempt.world_size != size:
            earlier, size = [], attempt.world_size
        paces = _paces(attempt)
        began = len(earlier)
        earlier += paces
        looks = list(_speed_looks(earlier, began, alerts))
        for it in stretches(looks, clear_s=_CLEAR_S):
            until_t = it.until_t + alerts.step_recent_s + alerts.keep_firing_s
            yield PastIncident(_slow_since(earlier, it, alerts), "slower", until_t, clear=it.clear)


def _paces(attempt: AttemptLines) -> list[_Pace]:
    """How long each step took by its rank's clock, behind the first ones of the attempt."""
    found = []
    for before, it in pairwise(attempt.teller().completed()[_FIRST_STEPS:]):
        stride = it.step - before.step
        if 0 < stride <= _MOST_STRIDE and it.own_t > before.own_t:
            found.append(_Pace(it.t, (it.own_t - before.own_t) / stride))
    return found


def _speed_looks(paces: Sequence[_Pace], first: int, alerts: Alerts) -> Iterator[tuple[float, Grade]]:
    """A look a minute at the steps from `first` on."""
    looked_t = -math.inf
    times = [it.t for it in paces]
    for place in range(first, len(paces)):
        t = times[place]
        if t - looked_t < _LOOK_S or t - times[first] < alerts.step_recent_s * 0.95:
            continue
        looked_t = t
        ratio = _ratio(paces, times, place, alerts)
        factor = alerts.step_regressed_factor
        yield t, grade(ratio, clear=factor * (1 + _EDGE), edge=factor * (1 - _EDGE))


def _ratio(paces: Sequence[_Pace], times: Sequence[float], place: int, alerts: Alerts) -> float:
    """The median of the last minutes by that of the hour before; 0 where there is too little of either."""
    t = times[place]
    recent = min(bisect_right(times, t - alerts.step_recent_s), place + 1 - _FEWEST)
    end = bisect_right(times, t - alerts.step_usual_offset_s)
    begin = bisect_left(times, t - alerts.step_usual_offset_s - alerts.step_usual_window_s)
    begin = min(begin, end - alerts.step_usual_least_steps)
    if begin < 0 or recent < 0 or end - begin < alerts.step_usual_least_steps:
        return 0.0
    usual_s = median(it.took_s for it in paces[begin:end])
    return median(it.took_s for it in paces[recent : place + 1]) / usual_s


def _slow_since(paces: Sequence[_Pace], stretch: Stretch, alerts: Alerts) -> float:
    """When the first of the slow steps began: behind the last two in a row that were no slower than usual."""
    times = [it.t for it in paces]
    place = bisect_left(times, stretch.t)
    recent_s = [it.took_s for it in paces[max(0, place - _FEWEST) : place + 1]]
    limit_s = median(recent_s) * (1 - (alerts.step_regressed_factor - 1) / 4)
    while place > 1 and times[place] > stretch.t - 2 * alerts.step_recent_s:
        if paces[place - 1].took_s < limit_s and paces[place - 2].took_s < limit_s:
            break
        place -= 1
    return paces[place].t - paces[place].took_s


def mfu_low(lines: Lines, alerts: Alerts, baseline: float | None) -> Iterator[PastIncident]:
    """Stretches of which nearly every step of half an hour had less mfu than the limit.

    `baseline` is what run.json says is usual; without it the most that the lines say of it counts.
    """
    usual = baseline or max((it for it in lines.baselines if math.isfinite(it)), default=0.0)
    if usual <= 0:
        return
    for attempt in lines.attempts.values():
        told = [(t, mfu / usual) for t, mfu in attempt.teller().mfu[_FIRST_STEPS:] if math.isfinite(mfu)]
        for it in stretches(_mfu_looks(told, alerts), clear_s=_CLEAR_S):
            until_t = it.until_t + alerts.mfu_window_s / 6 + alerts.keep_firing_s
            low_t = it.t - alerts.mfu_window_s / 2 if it.clear_t is None else it.clear_t - alerts.mfu_window_s
            yield PastIncident(low_t, "mfu_low", until_t, clear=it.clear)


def _mfu_looks(told: Sequence[tuple[float, float]], alerts: Alerts) -> Iterator[tuple[float, Grade]]:
    looked_t = -math.inf
    times = [t for t, _ in told]
    for place, (t, _) in enumerate(told):
        if t - looked_t < _LOOK_S or t - times[0] < alerts.mfu_window_s:
            continue
        looked_t = t
        shares = sorted(share for _, share in told[bisect_left(times, t - alerts.mfu_window_s) : place + 1])
        yield t, _mfu_grade(shares, alerts.mfu_degraded_fraction)


def _mfu_grade(shares: Sequence[float], limit: float) -> Grade:
    """Clear where nine of ten steps lie well below the limit, at the edge where half of them lie about it."""
    if len(shares) < _FEWEST or median(shares) < _LEAST_SHARE:
        return Grade.NO
    if shares[math.ceil(_MOST_OF_ALL * len(shares)) - 1] < limit * (1 - _MFU_EDGE):
        return Grade.CLEAR
    return grade(median(shares), clear=-math.inf, edge=limit * (1 + _MFU_EDGE))
