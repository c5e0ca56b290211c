"""When was what a log says written, where its lines do not tell?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from train_ledger.facts import Fact, Fault, Step

__all__ = ["merged", "timed"]


def merged(files: list[list[Fact]], is_wanted: Callable[[Fact], bool]) -> list[Fact]:
    """The facts of all files by their times; a clock that steps back leaves those of a file in order."""
    keyed: list[tuple[float, Fact]] = []
    for facts in files:
        newest = -math.inf
        for fact in filter(is_wanted, facts):
            newest = max(newest, fact.t if fact.t is not None else newest)
            keyed.append((newest, fact))
    keyed.sort(key=lambda pair: pair[0])
    return [fact for _, fact in keyed]


def timed(facts: list[Fact], written_t: float) -> list[Fact]:
    """The facts of a file, those without a time of their own with one; it was written last at `written_t`.

    Theirs is the latest that it can have been; of a fault `earliest_t` in its details is the earliest, as far
    as a line before it tells the time.
    """
    timed: list[Fact] = []
    facts = _bounded(facts)
    t, later = written_t, None
    for fact in reversed(facts):
        if isinstance(fact, Step) and later is not None and math.isnan(fact.t):
            t -= _took_s(fact, later)
        if fact.t is not None and math.isfinite(fact.t):
            t = min(t, fact.t)
        else:
            fact = replace(fact, t=t)
        if isinstance(fact, Step):
            later = fact
        timed.append(fact)
    timed.reverse()
    return timed


def _bounded(facts: list[Fact]) -> list[Fact]:
    """Faults that tell no time know what time it was before them."""
    newest, bounded = -math.inf, []
    for fact in facts:
        if fact.t is not None and math.isfinite(fact.t):
            newest = max(newest, fact.t)
        elif isinstance(fact, Fault):
            earliest_t = newest if math.isfinite(newest) else None
            fact = replace(fact, details={**fact.details, "earliest_t": earliest_t})
        bounded.append(fact)
    return bounded


def _took_s(fact: Step, later: Step) -> float:
    """Seconds from this step to a later one, by what that says of its own time; 0 where it says nothing."""
    each_s = later.values.get("step_time_s", 0.0)
    steps = later.step - fact.step
    return each_s * steps if math.isfinite(each_s) and each_s > 0 and 0 < steps < 10_000 else 0.0
