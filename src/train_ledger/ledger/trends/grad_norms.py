"""Was there a gradient norm far above those before it?"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import cast

from train_ledger.config import Alerts
from train_ledger.ledger.trends.figures import Spike

__all__ = ["GradNorms"]

_FEWEST = 20
"""From fewer norms nothing is said: those of the first steps fall steeply."""


class GradNorms:
    """The gradient norms of one rank in one attempt, on its own clock. One that is no number is no spike."""

    __slots__ = ("_last", "spike")

    def __init__(self, alerts: Alerts) -> None:
        self._last: deque[float] = deque(maxlen=max(_FEWEST, alerts.grad_norm_steps))
        self.spike: Spike | None = None

    def add(
        self, steps: Sequence[int], times: Sequence[float], norms: Sequence[float | None], factor: float
    ) -> None:
        """Steps in a row, and what they told; None and what is no number is left out."""
        if None in norms or not math.isfinite(sum(cast(Sequence[float], norms))):
            told = [
                it
                for it in zip(steps, times, norms, strict=True)
                if it[2] is not None and math.isfinite(it[2])
            ]
            if not told:
                return
            steps, times, norms = zip(*told, strict=True)
        self._look(steps, times, cast(Sequence[float], norms), factor)

    def _look(
        self, steps: Sequence[int], times: Sequence[float], norms: Sequence[float], factor: float
    ) -> None:
        known = [*self._last, *norms]
        before, most, floor = len(self._last), self._last.maxlen or 0, factor * min(known)
        if max(norms) > floor:  # else none is far above any
            for place, norm in enumerate(norms, before):
                if norm > floor and place >= _FEWEST:
                    usual = median(known[max(0, place - most) : place])
                    if norm > factor * usual > 0:
                        at = place - before
                        self.spike = Spike(steps[at], times[at], norm, usual)
        self._last.extend(norms)
