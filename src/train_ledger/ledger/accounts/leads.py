"""How far is each rank's clock ahead of the run's, lap by lap?

All ranks complete a step together, so that the steps that both completed tell it, the newest of a lap; ranks
of one host have one clock. Where a lap tells nothing, the laps next to it do.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from train_ledger.ledger.accounts.tape import RankTape, Tape
from train_ledger.ledger.clock import Lap

__all__ = ["Leads"]

_SHARED_STEPS = 5


class Leads:
    """Seconds by which clocks are ahead of that of rank 0's host, or of the lowest rank's without one."""

    def __init__(self, ranks: Mapping[int | None, RankTape]) -> None:
        self._ranks = ranks
        named = [rank for rank in ranks if rank is not None]
        self._first = min(named) if named else None
        laps = sorted({lap for tape in ranks.values() for lap in tape.tapes})
        self._by_host = {lap: self._of_lap(lap) for lap in laps}

    def _of_lap(self, lap: Lap) -> dict[str, float]:
        zero = self._ranks[self._first].tapes.get(lap) if self._first in self._ranks else None
        if zero is None or self._first is None:
            return {}
        found: dict[str, list[float]] = {}
        for rank, tape in self._ranks.items():
            own = tape.tapes.get(lap)
            if own is not None and rank != self._first:
                shared = _shared(own, zero)
                if shared:
                    found.setdefault(self._host(rank, lap[0]), []).append(median(shared))
        leads = {host: median(it) for host, it in found.items()}
        leads[self._host(self._first, lap[0])] = 0.0
        return leads

    def _host(self, rank: int | None, attempt: int) -> str:
        tape = self._ranks.get(rank)
        host = tape.host_in.get(attempt) or tape.host if tape is not None else None
        return host or f"rank {rank}"

    def of(self, rank: int | None, attempt: int, lap: int | None = None) -> float:
        """By how much this rank's clock is ahead in a lap (None: the attempt's last)."""
        if rank is None or rank == self._first:
            return 0.0
        host = self._host(rank, attempt)
        laps = [it for it in self._by_host if it[0] == attempt and (lap is None or it[1] == lap)]
        for there in (*reversed(laps), *self._nearest(attempt)):
            told = self._by_host[there].get(host)
            if told is not None:
                return told
        return 0.0

    def _nearest(self, attempt: int) -> list[Lap]:
        return sorted(self._by_host, key=lambda lap: (abs(lap[0] - attempt), -lap[0], -lap[1]))


def _shared(own: Tape, zero: Tape) -> list[float]:
    """The newest differences of the two at steps that both told."""
    found: list[float] = []
    a, b = len(own.steps) - 1, len(zero.steps) - 1
    while a >= 0 and b >= 0 and len(found) < _SHARED_STEPS:
        if own.steps[a] == zero.steps[b]:
            found.append(own.times[a] - zero.times[b])
            a, b = a - 1, b - 1
        elif own.steps[a] > zero.steps[b]:
            a -= 1
        else:
            b -= 1
    return found
