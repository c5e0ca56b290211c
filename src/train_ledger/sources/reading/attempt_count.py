"""Which attempt of a run is a line of a log from?

Logs do not number the starts of a run. A step that goes back tells of one, and so does a launcher that says
it restarts. Each program that writes into a log counts its steps on its own, so each goes back by itself.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from train_ledger.facts import Event, Fact, Fault, Step

__all__ = ["AttemptCount", "RankStreams"]

_STARTS = {"restart": 1, "run_start": 3}
"""Events that begin an attempt, and behind how many lines of steps: ranks that start together may say so when
another one has a step behind it."""
_MOST_STREAMS = 1 << 20


@dataclass(slots=True)
class _Stream:
    """How far one program of one rank is: its last step, when, and in which attempt."""

    step: int
    t: float
    attempt: int
    file: str


class RankStreams:
    """How far each rank is, over the files of one run."""

    def __init__(self) -> None:
        self.streams: dict[tuple[int | None, str], _Stream] = {}


class AttemptCount:
    """Numbers the attempts in one file; `attempt` is what its path says.

    What is told of a rank goes on from one file of its run to the next, through `ranks`; what is told of no
    rank is of this file alone.
    """

    def __init__(self, file: str, attempt: int | None = None, ranks: RankStreams | None = None) -> None:
        self._file = file
        self._base = attempt or 0
        self._ranks = (ranks or RankStreams()).streams
        self._nobodys: dict[tuple[int | None, str], _Stream] = {}
        self._now: dict[int | None, int] = {}
        self._stepped: Counter[int | None] = Counter()
        self._begun: set[int | None] = set()
        self._troubled: set[int | None] = set()

    def of(self, fact: Fact, program: str, *, alone: bool = False) -> int:
        """The attempt of a fact that `program` wrote, `alone` where nobody else writes into this file."""
        if isinstance(fact, Step):
            return self._of_step(fact, program)
        if isinstance(fact, Fault):
            self._troubled.add(fact.rank)
        elif isinstance(fact, Event) and fact.name in _STARTS:
            self._start(fact.rank, program, 1 if alone else _STARTS[fact.name])
        return self._current(fact.rank)

    def _current(self, rank: int | None) -> int:
        return self._now.get(rank, self._now.get(None, self._base) if rank is not None else self._base)

    def _start(self, rank: int | None, program: str, lines: int) -> None:
        """A start that is told of; one of nobody is of every rank."""
        if rank is None:
            for stepped in [it for it, told in self._stepped.items() if told >= lines]:
                self._begin(stepped, self._current(stepped))
            return
        before = self._ranks.get((rank, program))
        if self._stepped[rank] >= lines or (before is not None and before.file != self._file):
            self._begin(rank, max(self._current(rank), before.attempt if before else 0))

    def _begin(self, rank: int | None, before: int) -> None:
        """Once, though many may tell of it, until the next step."""
        if rank not in self._begun:
            self._begun.add(rank)
            self._now[rank] = before + 1

    def _of_step(self, fact: Step, program: str) -> int:
        rank = fact.rank
        streams = self._nobodys if rank is None else self._ranks
        before = streams.get((rank, program))
        if before is None:
            attempt = self._current(rank)
            if len(streams) < _MOST_STREAMS:
                streams[(rank, program)] = _Stream(fact.step, fact.t, attempt, self._file)
        elif self._is_late(fact, before):
            return before.attempt
        else:
            attempt = self._next(fact, before)
            before.step, before.t, before.attempt, before.file = fact.step, fact.t, attempt, self._file
        self._stepped[rank] = 1 if rank in self._begun else self._stepped[rank] + 1
        self._begun.discard(rank)
        self._troubled.discard(rank)
        return attempt

    def _next(self, fact: Step, before: _Stream) -> int:
        rank = fact.rank
        known = max(self._current(rank), before.attempt)
        again = fact.step < before.step or (
            fact.step == before.step and (rank in self._troubled or before.file != self._file)
        )
        self._now[rank] = known + 1 if again and before.attempt >= known else known
        return self._now[rank]

    @staticmethod
    def _is_late(fact: Step, before: _Stream) -> bool:
        """A line of before that comes behind; without times nobody can tell."""
        return fact.step < before.step and math.isfinite(fact.t + before.t) and fact.t < before.t
