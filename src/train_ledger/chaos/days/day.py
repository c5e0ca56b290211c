"""What is a day: what was told of it, and what is true of it?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from train_ledger.chaos.days.clock import HostClock
from train_ledger.facts import Fact, HardwareReading

__all__ = ["Day", "Told", "Truth"]


class Told(NamedTuple):
    """A fact, and the true time at which it can be read."""

    at: float
    fact: Fact | HardwareReading


@dataclass(slots=True)
class Truth:
    """What a judge should find in a day, known when the day has been told to its end.

    `kind` is None for a healthy day. The incident began at `t`; one of `alerts` has to fire, which by their
    definitions cannot be before `earliest_t`; `allowed` are pages that may come with it or after it. `ranks`,
    `hosts` and `gpus` are those that may be named, empty where nobody is to blame; `outliers` are ranks that
    do drag their peers.
    """

    kind: str | None = None
    t: float = math.inf
    earliest_t: float = math.inf
    alerts: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    ranks: frozenset[int] = frozenset()
    hosts: frozenset[str] = frozenset()
    gpus: frozenset[int] = frozenset()
    outliers: frozenset[int] = frozenset()


@dataclass(slots=True)
class Day:
    """One day of one run. `told` can be gone through once, in the order in which it can be read.

    `clock_of` is the clock of a host; of rank 0's where none is named. `truth` is complete when `told` has
    come to its end.
    """

    name: str
    seed: int
    start_t: float
    run_json: Mapping[str, Any]
    told: Iterator[Told]
    clock_of: Callable[[str | None], HostClock]
    truth: Truth = field(default_factory=Truth)
