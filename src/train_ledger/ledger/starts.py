"""Which attempt has begun, and which is only a number in a stray line?

A rank's run_start begins an attempt, or the launcher's line that says so. Writers that say none begin it by
their lines: more than half of the ranks, or one rank that has completed many steps. Until then the lines of a
higher attempt wait, in the order in which their rank wrote them, and change nothing: one odd line must not
make a hanging run a restarting one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from train_ledger.facts import Event, Fact, Step

__all__ = ["Starts"]

_STARTS = frozenset({"run_start", "restart"})
_STEPS_OF_A_START = 20
_WAITING_AT_MOST = 1000


class Starts:
    """Holds back the facts of attempts that nothing else speaks for; attempt 0 has begun with the run."""

    def __init__(self) -> None:
        self._begun = {0}
        self._waiting: dict[int, deque[Fact]] = {}

    def admitted(self, rank: int, fact: Fact) -> Iterable[Fact]:
        """What is to be folded of a rank that wrote this now: it, behind what waited; or nothing yet."""
        if isinstance(fact, Event) and fact.name in _STARTS:
            self._begun.add(fact.attempt)
        if fact.attempt in self._begun:
            return (*self._released(rank), fact) if self._waiting else (fact,)
        self._waiting.setdefault(rank, deque(maxlen=_WAITING_AT_MOST)).append(fact)
        return ()

    def settled(self, ranks: int) -> list[Fact]:
        """What waited for an attempt that has begun by now; `ranks` is how many the run has."""
        if not self._waiting:
            return []
        lines: dict[int, dict[int, list[Fact]]] = {}
        for rank, facts in self._waiting.items():
            for fact in facts:
                lines.setdefault(fact.attempt, {}).setdefault(rank, []).append(fact)
        self._begun |= {
            attempt for attempt, by_rank in lines.items() if _begun(list(by_rank.values()), ranks)
        }
        return [fact for rank in sorted(self._waiting) for fact in self._released(rank)]

    def _released(self, rank: int) -> list[Fact]:
        facts = self._waiting.pop(rank, None) or ()
        left = deque((it for it in facts if it.attempt not in self._begun), maxlen=_WAITING_AT_MOST)
        if left:
            self._waiting[rank] = left
        return [fact for fact in facts if fact.attempt in self._begun]


def _begun(lines: list[list[Fact]], ranks: int) -> bool:
    """Whether these lines of an attempt, one list a rank, are enough to believe that it has begun."""
    most = 2 * len(lines) > ranks and sum(map(len, lines)) > 1
    return most or any(sum(isinstance(it, Step) for it in own) >= _STEPS_OF_A_START for own in lines)
