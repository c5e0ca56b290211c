"""For which part of a day did the run come no further?

Each step that is further than any before it counts as much as it took, and no more than twice what a step
took just before: so neither what was done once more nor a pause counts. Looked at every five minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from itertools import accumulate
from statistics import median

from train_ledger.config import Alerts
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.signs.lines import Lines
from train_ledger.dash.backtest.signs.stretches import Grade, grade, stretches

__all__ = ["effective_low"]

_LOOK_S = 300.0
_CLEAR_S = 600.0
_EDGE = 0.03
_AT_MOST = 2.0
_LATELY = 21


def effective_low(lines: Lines, alerts: Alerts, began_t: float) -> Iterator[PastIncident]:
    """Stretches in which less than `effective_fraction` of the window brought the run further."""
    credits = list(_credits(lines))
    times = [t for t, _ in credits]
    totals = [0.0, *accumulate(credit_s for _, credit_s in credits)]

    def looks() -> Iterator[tuple[float, Grade]]:
        t = began_t + alerts.effective_from_age_s
        until_t = min(lines.until_t, lines.ended_t())
        while t <= until_t:
            since_t = max(began_t, t - alerts.effective_window_s)
            done_s = totals[bisect_right(times, t)] - totals[bisect_right(times, since_t)]
            fraction, limit = done_s / max(1.0, t - since_t), alerts.effective_fraction
            yield t, grade(fraction, clear=limit - _EDGE, edge=limit + _EDGE)
            t += _LOOK_S

    for it in stretches(looks(), clear_s=_CLEAR_S):
        yield PastIncident(
            it.t - _LOOK_S, "effective_low", it.until_t + _LOOK_S + alerts.keep_firing_s, clear=it.clear
        )


def _credits(lines: Lines) -> Iterator[tuple[float, float]]:
    """(when, seconds) of each step that was further than any before."""
    reached: int | None = None
    for attempt in lines.attempts.values():
        lately: deque[float] = deque(maxlen=_LATELY)
        before = None
        for it in attempt.teller().completed() if attempt.ranks else ():
            if before is not None and it.step > before.step:
                stride = it.step - before.step
                each_s = max(0.0, it.own_t - before.own_t) / stride
                lately.append(each_s)
                if reached is None or it.step > reached:
                    yield it.t, min(each_s, _AT_MOST * median(lately)) * min(stride, it.step - (reached or 0))
            reached = it.step if reached is None else max(reached, it.step)
            before = it
