"""What was known of a run at a moment in the past?

A fact counts by its own time, read on the run's clock: that of rank 0's host, with each host's offset taken
off and jumps carried over. So a host whose clock is ten minutes fast is not left out as if it wrote in the
future.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from train_ledger.config import Config
from train_ledger.facts import Fact, Fault, HardwareReading
from train_ledger.ledger.fold import Fold
from train_ledger.ledger.host_times import HostTimes

__all__ = ["Dated", "dated", "dated_of_hosts", "known_at", "known_with_hardware"]

_OfHardware = HardwareReading | Fault


class Dated(NamedTuple):
    """A fact with its time on the run's clock, None where it says none.

    `lead_s` is by how much the clock of its host, carried over its jumps, is ahead of the run's.
    """

    fact: Fact
    t: float | None
    lead_s: float


def dated(facts: Iterable[Fact]) -> list[Dated]:
    """The facts in their order, each with its time on the run's clock.

    A host's offset is taken as the steps before the fact show it, and before there are any, as the later ones
    do.
    """
    fold = Fold("", Config())
    carried: list[tuple[Fact, float | None, float | None]] = []
    for fact in facts:
        fold.add(fact)
        shift_s, lead_s = fold.clock_of(fact.rank)
        carried.append((fact, None if fact.t is None else fact.t + shift_s, lead_s))
    later_s = fold.leads_s()
    return [_dated(fact, t, lead_s, later_s.get(fact.rank or 0, 0.0)) for fact, t, lead_s in carried]


def _dated(fact: Fact, t: float | None, lead_s: float | None, later_s: float) -> Dated:
    ahead_s = later_s if lead_s is None else lead_s
    return Dated(fact, None if t is None else t - ahead_s, ahead_s)


def known_at(facts: Iterable[Fact], t: float) -> list[Fact]:
    """Those of the facts, in their order, that lie at or before `t` on the run's clock.

    A fact without a time is taken as known: who read it could not say when it was written.
    """
    return [it.fact for it in dated(facts) if it.t is None or it.t <= t]


def dated_of_hosts(
    past: Iterable[Dated], hardware: Iterable[_OfHardware]
) -> list[tuple[_OfHardware, float | None]]:
    """What hosts recorded of their hardware, in its order, each with its time on the run's clock.

    `past` are the ranks' facts, as `dated` gives them: they show what each host's clock was off, and when.
    """
    times = HostTimes()
    for it in past:
        times.saw(it.fact, it.t)
    return [
        (it, None if it.t is None else times.dated(it.host or "", type(it).__name__, it.t)) for it in hardware
    ]


def known_with_hardware(
    facts: Iterable[Fact], hardware: Iterable[_OfHardware], t: float
) -> tuple[list[Fact], list[_OfHardware]]:
    """As `known_at`, and those of what hosts recorded of their hardware, each by the clock of its host."""
    past = dated(facts)
    told = [it for it, at_t in dated_of_hosts(past, hardware) if at_t is None or at_t <= t]
    return [it.fact for it in past if it.t is None or it.t <= t], told
