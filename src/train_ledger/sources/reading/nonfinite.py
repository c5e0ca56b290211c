"""Which steps say, or hide, that the numbers went wrong?

A loss or a gradient norm that is not finite is told once, and again only after many healthy steps. A filter
may keep a NaN out of the loss that is logged (transformers' logging_nan_inf_filter); the norm shows it. Where
a step was skipped for its scale, an infinite norm is what the scaler looks for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from train_ledger.facts import Fact, Fault, Step
from train_ledger.fields import written_number

__all__ = ["Nonfinite"]

_HEALTHY_STEPS = 100
"""A fault after so many finite steps is another one."""
_MOST_RANKS = 1 << 20
_WATCHED = ("loss", "loss_max", "train_loss", "grad_norm")


class Nonfinite:
    """Passes facts on, tells what is not finite, and leaves out what was told already."""

    def __init__(self) -> None:
        self._told: dict[tuple[int | None, int], int] = {}
        self._skipped: dict[int | None, float] = {}
        self.repeated = 0

    def of(self, fact: Fact) -> Iterator[Fact]:
        if isinstance(fact, Step):
            yield fact
            bad = self._bad(fact)
            if bad is not None and self._is_news(fact.rank, fact.attempt, fact.step):
                details = {"field": bad, "value": written_number(fact.values[bad])}
                yield Fault(
                    fact.t if math.isfinite(fact.t) else None,
                    "nan_suspected",
                    fact.rank,
                    fact.step,
                    fact.attempt,
                    fact.host,
                    fact.source,
                    details,
                )
        elif not (isinstance(fact, Fault) and fact.fault == "nan_suspected") or self._is_news(
            fact.rank, fact.attempt, fact.step
        ):
            yield fact

    def _bad(self, fact: Step) -> str | None:
        values = fact.values
        skipped = values.get("skipped")
        before = self._skipped.get(fact.rank, 0.0)
        if skipped is not None and len(self._skipped) < _MOST_RANKS:
            self._skipped[fact.rank] = skipped
        by_scale = skipped is not None and 0 < skipped != before  # less than before: an attempt counts anew
        for name in _WATCHED:
            value = values.get(name)
            if value is not None and not math.isfinite(value) and not (by_scale and name == "grad_norm"):
                return name
        return None

    def _is_news(self, rank: int | None, attempt: int, step: int | None) -> bool:
        key = (rank, attempt)
        last = self._told.get(key)
        at = step if step is not None else last or 0
        if last is None and len(self._told) >= _MOST_RANKS:
            self.repeated += 1
            return False
        self._told[key] = at
        if last is None or at - last > _HEALTHY_STEPS:
            return True
        self.repeated += 1
        return False
