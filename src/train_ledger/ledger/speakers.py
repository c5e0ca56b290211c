"""Of which rank is a line: of the one that it names, of all, or of nobody?

A trainer's log tells of steps without a name; they stand under rank 0 and are of all ranks, unless these
speak for themselves.
"""

from __future__ import annotations

import math
from dataclasses import replace

from train_ledger.facts import Event, Fact, Fault, Step

__all__ = ["Speakers", "of_no_place"]

_OF_ONE_PROCESS = frozenset({"exception", "signal", "process_gone", "process_seen", "warning"})
"""Events that say something of one process, so that they say nothing where it has no name."""

_PLACES = frozenset({"pid", "gpu", "uuid", "pci", "worker_server", "local_rank"})


class Speakers:
    """Who speaks in a run. `ranks_speak`: they do for themselves.

    A rank that says when it starts and which steps it takes speaks for itself, and so do all.
    """

    def __init__(self) -> None:
        self.ranks_speak = False
        self._started_ranks: set[int] = set()

    def rank_of(self, fact: Fact) -> int | None:
        """The rank under which a fact stands, 0 where it is of all; None: it is nobody's."""
        if fact.rank is not None:
            if not self.ranks_speak:
                self._hear_name(fact, fact.rank)
            return fact.rank
        if self.ranks_speak or isinstance(fact, Fault) or not math.isfinite(fact.t):
            return None
        return None if isinstance(fact, Event) and fact.name in _OF_ONE_PROCESS else 0

    def _hear_name(self, fact: Fact, rank: int) -> None:
        if isinstance(fact, Event) and fact.name == "run_start":
            self._started_ranks.add(rank)
        elif isinstance(fact, Step) and rank in self._started_ranks:
            self.ranks_speak = True


def of_no_place(fact: Fact) -> Fact:
    """Without the process and the GPU of one rank, since it is told of all."""
    if not isinstance(fact, Event) or _PLACES.isdisjoint(fact.details):
        return fact
    details = {key: value for key, value in fact.details.items() if key not in _PLACES}
    return replace(fact, details=details)
