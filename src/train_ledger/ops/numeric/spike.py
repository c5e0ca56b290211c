"""Has the loss jumped and not gone back?

A spike that heals within some steps is usual in large runs; one that stays has cost what was learnt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from train_ledger.facts import Step

__all__ = ["LOOKED_AT", "LossSpike", "spike_in"]

LOOKED_AT = 600
_BEFORE = 100
_LATEST = 10
_LEAST_JUMP = 1.5
_SPREADS = 10.0


@dataclass(frozen=True, slots=True)
class LossSpike:
    """The loss was about `before` and is about `now`, since `step`."""

    step: int
    t: float
    before: float
    now: float
    source: str


def spike_in(steps: Sequence[Step]) -> LossSpike | None:
    """The jump in these steps, in a row of one attempt, that the last ones have not come back from.

    The last ten are held against a hundred before the jump: they must be half as high again, and far outside
    of what those scattered by.
    """
    told = [it for it in steps if math.isfinite(it.values.get("loss", math.nan))]
    told = [it for it in told if it.attempt == told[-1].attempt]
    if len(told) < _BEFORE + _LATEST:
        return None
    losses = [it.values["loss"] for it in told]
    now = median(losses[-_LATEST:])
    before = median(losses[:_BEFORE])
    spread = median(abs(it - before) for it in losses[:_BEFORE])
    limit = max(_LEAST_JUMP * before, before + _SPREADS * spread)
    if before <= 0 or now <= limit:
        return None
    half = (before + now) / 2
    at = next((place for place in range(len(losses) - 1, -1, -1) if losses[place] < half), -1) + 1
    if at < _BEFORE or len(losses) - at < _LATEST or median(losses[at - _LATEST : at]) > half:
        return None
    return LossSpike(told[at].step, told[at].t, median(losses[at - _BEFORE : at]), now, told[at].source)
