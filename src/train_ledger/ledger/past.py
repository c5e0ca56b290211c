"""What was known of a run at a moment in the past?

A fact counts by its own time, read on the run's clock: that of rank 0's host, with each host's offset taken
off and jumps carried over. So a host whose clock is ten minutes fast is not left out as if it wrote in the
future.
"""

from __future__ import annotations

from collections.abc import Iterable

from train_ledger.config import Config
from train_ledger.facts import Fact
from train_ledger.ledger.fold import Fold

__all__ = ["known_at"]


def known_at(facts: Iterable[Fact], t: float) -> list[Fact]:
    """Those of the facts, in their order, that lie at or before `t` on the run's clock.

    A host's offset is taken as the steps before the fact show it, and before there are any, as the later ones
    do. A fact without a time is taken as known: who read it could not say when it was written.
    """
    fold = Fold("", Config())
    dated: list[tuple[Fact, float, float | None]] = []
    for fact in facts:
        fold.add(fact)
        shift_s, lead_s = fold.clock_of(fact.rank)
        dated.append((fact, t if fact.t is None else fact.t + shift_s, lead_s))
    later_s = fold.leads_s()
    return [
        fact
        for fact, carried_t, lead_s in dated
        if carried_t - _either(lead_s, later_s.get(fact.rank or 0)) <= t
    ]


def _either(lead_s: float | None, later_s: float | None) -> float:
    return (later_s or 0.0) if lead_s is None else lead_s
