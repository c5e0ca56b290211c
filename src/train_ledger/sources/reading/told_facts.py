"""What do the facts of one file's lines become, with what is known around them?

Each gets the rank, the host and the time that its line's front and the file's path know, and its attempt; a
number that is not finite becomes a suspicion; facts that are one are joined; an exception that training went
on after is none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from train_ledger.facts import Fact, Fault
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.logs.torchrun import LogPlace
from train_ledger.sources.reading.attempt_count import AttemptCount
from train_ledger.sources.reading.nonfinite import Nonfinite
from train_ledger.sources.reading.program import Program
from train_ledger.sources.reading.succession import Succession
from train_ledger.sources.reading.survived import Survived

__all__ = ["ToldFacts"]


class ToldFacts:
    """The facts of one file on their way out.

    `place` is what its path tells, `is_alone` that one program has it to itself. `lines_told` counts the
    lines that told something; `last_t` is the newest time (unix seconds), `last_log_t` that of each rank.
    """

    def __init__(self, place: LogPlace, attempts: AttemptCount) -> None:
        self.place = place
        self.attempts = attempts
        self.is_alone = False
        self.last_log_t: dict[int, float] = {}
        self.last_t: float | None = None
        self.lines_told = 0
        self._nonfinite = Nonfinite()
        self._survived = Survived()
        self._succession = Succession()

    @property
    def repeated(self) -> Counter[str]:
        """Faults that say again what one before them said, by code."""
        found = Counter(self._succession.repeated)
        if self._nonfinite.repeated:
            found["nan_suspected"] += self._nonfinite.repeated
        return found

    def passed(self, program: Program, facts: Iterable[Fact], line: LogLine) -> Iterator[Fact]:
        """What `program` told of a line, and what waited for it; what may still be joined waits."""
        told = False
        for fact in program.believed(facts):
            told = True
            placed = self._placed(fact, line, program)
            program.seen.count(placed)
            for known in self._nonfinite.of(placed):
                for each in self._survived.of(known):
                    yield from self._succession.add(each)
        self.lines_told += told

    def settle(self) -> list[Fact]:
        """All that waits."""
        told = [fact for fault in self._survived.settle() for fact in self._succession.add(fault)]
        return [*told, *self._succession.settle()]

    def _placed(self, fact: Fact, line: LogLine, program: Program) -> Fact:
        """The fact with what the line's front and the file's path know besides."""
        rank = fact.rank
        if rank is None and program.speaks_for_its_rank:
            rank = line.rank if line.rank is not None else self.place.rank
        host = fact.host or line.host or self.place.host
        t = fact.t
        if line.t is not None and (t is None or math.isnan(t)):
            t = line.t
        self._hear(rank, t)
        if (rank, host, t) != (fact.rank, fact.host, fact.t):
            fact = _replaced(fact, rank, host, t)
        if program.numbers_attempts:
            return fact
        attempt = self.attempts.of(fact, program.seen.name, alone=self.is_alone)
        return fact if attempt == fact.attempt else replace(fact, attempt=attempt)

    def _hear(self, rank: int | None, t: float | None) -> None:
        if t is None or not math.isfinite(t):
            return
        self.last_t = t if self.last_t is None else max(t, self.last_t)
        if rank is not None:
            self.last_log_t[rank] = max(t, self.last_log_t.get(rank, t))


def _replaced(fact: Fact, rank: int | None, host: str | None, t: float | None) -> Fact:
    if isinstance(fact, Fault):
        return replace(fact, rank=rank, host=host, t=t)
    return replace(fact, rank=rank, host=host, t=math.nan if t is None else t)
