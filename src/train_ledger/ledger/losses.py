"""Since when, and how often, is one rank's loss no finite number?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from train_ledger.facts import PlainStep

__all__ = ["Losses"]

_HEALTHY_STEPS = 100
"""A fault after so many finite steps is another one."""


class Losses:
    """The steps of one attempt whose loss was not finite, or vanished beside such a gradient norm.

    `since_t` and `since_step` are when and which the first was that enough finite ones have not followed,
    `t` and `step` those of the last.
    """

    __slots__ = ("_seen", "since_step", "since_t", "step", "t", "total")

    def __init__(self) -> None:
        self._seen = False
        self.total = 0
        self.went_back()

    def went_back(self) -> None:
        """The step went back, behind the fault."""
        self.since_t: float | None = None
        self.since_step: int | None = None
        self.step: int | None = None
        self.t: float | None = None

    def add(self, values: Mapping[str, float], step: int, t: float) -> None:
        """What the line of a step says, at its carried time."""
        loss = values.get("loss")
        if loss is None:
            bad = self._seen and not math.isfinite(values.get("grad_norm", 0.0))
        else:
            self._seen = True
            bad = not math.isfinite(loss)
        if bad:
            self._fault(step, t)

    def add_finite(self, steps: Iterable[PlainStep]) -> None:
        """As `add` for steps whose values are all finite."""
        self._seen = self._seen or any(step.loss is not None for step in steps)

    def _fault(self, step: int, t: float) -> None:
        self.total += 1
        healed = self.step is not None and step - self.step > _HEALTHY_STEPS
        if self.since_t is None or healed:
            self.since_t, self.since_step = t, step
        if self.t is None or t >= self.t:
            self.step, self.t = step, t
