"""At which step does the run stand, and whose lines tell it?"""

from __future__ import annotations

import math
from statistics import median_high

from train_ledger.ledger.rank import RankFold

__all__ = ["step_clock", "step_tellers"]

_NOW_AND_THEN = 10
"""Of so many steps such a rank tells one."""


def step_tellers(ranks: list[tuple[RankFold, float]]) -> list[tuple[RankFold, float]]:
    """Those whose lines tell the run's steps; others are named in a log now and then."""
    most = max((rank.pace.told for rank, _ in ranks), default=0)
    return [it for it in ranks if it[0].step is not None and it[0].pace.told * _NOW_AND_THEN >= most]


def step_clock(ranks: list[tuple[RankFold, float]]) -> tuple[int | None, float | None]:
    """The step and the time where at least half of the ranks that completed one stand.

    Where a log tells the steps of all ranks, single ones that are named in it now and then do not hold it up.
    """
    for_all = [it for it in ranks if it[0].speaks_for_all]
    clocks = [_median(for_all), _median([it for it in ranks if not it[0].speaks_for_all])]
    return max(clocks, key=lambda it: -math.inf if it[1] is None else it[1])


def _median(ranks: list[tuple[RankFold, float]]) -> tuple[int | None, float | None]:
    steps = [rank.step for rank, _ in ranks if rank.step is not None]
    times = [rank.step_t - lead_s for rank, lead_s in ranks if rank.step_t is not None]
    return (median_high(steps), median_high(times)) if steps else (None, None)
