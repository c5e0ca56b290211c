"""How far is each rank's clock ahead of the run's, lap by lap?

All ranks complete a step together, so that the steps that both completed tell it, the newest of a lap; ranks
of one host have one clock. Where a lap tells nothing, the laps next to it do; where none does, a start that
lies far from the others' tells of a clock that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from train_ledger.ledger.accounts.tape import RankTape, Tape
from train_ledger.ledger.clock import Lap

__all__ = ["Leads"]

_SHARED_STEPS = 5
_TOGETHER_S = 60.0
"""Ranks that a launcher starts write their first lines within less of each other."""

_ByHost = dict[str, float]


class Leads:
    """Seconds by which clocks are ahead of that of rank 0's host, or of the lowest rank's without one.

    `first` is that rank, None where no rank is named.
    """

    def __init__(self, ranks: Mapping[int | None, RankTape]) -> None:
        # In one order, however the facts came: else two equal histories would differ by a millisecond.
        self._ranks = {rank: ranks[rank] for rank in sorted(ranks, key=lambda it: -1 if it is None else it)}
        named = [rank for rank in ranks if rank is not None]
        self.first = min(named) if named else None
        laps = sorted({lap for tape in ranks.values() for lap in tape.tapes})
        self._by_host = {lap: self._of_lap(lap) for lap in laps}
        self._shift()
        self._asked: dict[tuple[int, int, int | None], float] = {}

    def _of_lap(self, lap: Lap) -> _ByHost:
        """By host, against the lowest rank that is there."""
        named = {rank: it for rank, it in self._ranks.items() if rank is not None}
        here = {rank: it.tapes[lap] for rank, it in named.items() if lap in it.tapes}
        if not here:
            return {}
        lowest = min(here)
        found: dict[str, list[float]] = {}
        for rank, tape in here.items():
            if rank != lowest and (shared := _shared(tape, here[lowest])):
                found.setdefault(self._host(rank, lap[0]), []).append(median(shared))
        leads = {host: median(it) for host, it in found.items()}
        leads[self._host(lowest, lap[0])] = 0.0
        return leads

    def _shift(self) -> None:
        """Put the laps in which the clock of the run told nothing beside those in which it did."""
        for lap, leads in self._by_host.items():
            host = self._host(self.first, lap[0])
            if host in leads:
                self._by_host[lap] = {name: lead_s - leads[host] for name, lead_s in leads.items()}
        known = [lap for lap, leads in self._by_host.items() if self._host(self.first, lap[0]) in leads]
        for lap, leads in self._by_host.items():
            if lap not in known:
                self._by_host[lap] = self._shifted(leads, sorted(known, key=lambda it: abs(it[0] - lap[0])))

    def _shifted(self, leads: _ByHost, known: list[Lap]) -> _ByHost:
        for there in known:
            for host, lead_s in sorted(leads.items()):
                if (told := self._by_host[there].get(host)) is not None:
                    return {name: it - lead_s + told for name, it in leads.items()}
        return {}

    def _host(self, rank: int | None, attempt: int) -> str:
        tape = self._ranks.get(rank)
        host = tape.host_in.get(attempt) or tape.host if tape is not None else None
        return host or f"rank {rank}"

    def of(self, rank: int | None, attempt: int, lap: int | None = None) -> float:
        """By how much this rank's clock is ahead in a lap (None: the attempt's last)."""
        if rank is None or rank == self.first:
            return 0.0
        key = (rank, attempt, lap)
        if key not in self._asked:
            self._asked[key] = self._of(rank, attempt, lap)
        return self._asked[key]

    def _of(self, rank: int, attempt: int, lap: int | None) -> float:
        host = self._host(rank, attempt)
        laps = [it for it in self._by_host if it[0] == attempt and (lap is None or it[1] == lap)]
        nearest = sorted(self._by_host, key=lambda it: (abs(it[0] - attempt), -it[0], -it[1]))
        for there in (*reversed(laps), *nearest):
            if (told := self._by_host[there].get(host)) is not None:
                return told
        return 0.0 if host == self._host(self.first, attempt) else self._by_start(rank, attempt)

    def _by_start(self, rank: int, attempt: int) -> float:
        first = self._ranks[self.first].heard.get(attempt) if self.first in self._ranks else None
        own = self._ranks[rank].heard.get(attempt) if rank in self._ranks else None
        apart_s = own[0] - first[0] if own is not None and first is not None else 0.0
        return apart_s if abs(apart_s) > _TOGETHER_S else 0.0


def _shared(own: Tape, other: Tape) -> list[float]:
    """The newest differences of the two at steps that both told."""
    found: list[float] = []
    a, b = len(own.steps) - 1, len(other.steps) - 1
    while a >= 0 and b >= 0 and len(found) < _SHARED_STEPS:
        if own.steps[a] == other.steps[b]:
            found.append(own.times[a] - other.times[b])
            a, b = a - 1, b - 1
        elif own.steps[a] > other.steps[b]:
            a -= 1
        else:
            b -= 1
    return found
