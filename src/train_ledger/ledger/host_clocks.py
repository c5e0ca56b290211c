"""How far is each rank's host off the clock of rank 0's host?

It is read off the steps that both completed, since in synchronous training all ranks complete a step
together; in a hang only some completed the last one, which is why it takes shared steps. A clock that jumps
has been carried on before, as if it had not (see `clock`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import median

from train_ledger.ledger.clock import Lap

__all__ = ["HostClocks"]

_SHARED_STEPS = 5
_ZERO_STEPS = 10_000
_WAITING_STEPS = 200_000


class HostClocks:
    """How far each rank's host is off the clock of rank 0's host, from the newest steps both completed.

    What the ranks completed is kept until rank 0 has come as far, and compared when somebody asks. Where a
    rank and rank 0 are read so far apart that more would have to be kept, the oldest steps are given up.
    """

    def __init__(self) -> None:
        self._zero: dict[Lap, dict[int, float]] = {}
        self._zero_steps = 0
        self._waiting: dict[int, dict[Lap, tuple[list[int], list[float]]]] = {}
        self._waiting_steps = 0
        self._leads: dict[int, deque[float]] = {}

    def completed(self, rank: int, lap: Lap, steps: Sequence[int], times: Sequence[float]) -> None:
        """A rank completed rising steps of one lap at these times on its own clock."""
        if rank == 0:
            self._zero.setdefault(lap, {}).update(zip(steps, times, strict=True))
            self._zero_steps += len(steps)
            if self._zero_steps > 2 * _ZERO_STEPS:
                self._compare()
                self._forget_zero()
            return
        waiting_steps, waiting_times = self._waiting.setdefault(rank, {}).setdefault(lap, ([], []))
        waiting_steps += steps
        waiting_times += times
        self._waiting_steps += len(steps)
        if self._waiting_steps > _WAITING_STEPS:
            self._compare()
            if self._waiting_steps > _WAITING_STEPS // 2:
                self._forget_waiting()

    def _compare(self) -> None:
        """Take the leads of all steps that rank 0 has come to by now, and keep the later ones."""
        for rank in self._waiting:
            self._compare_rank(rank)

    def _compare_rank(self, rank: int) -> None:
        laps = self._waiting.get(rank)
        if not laps or not self._zero:
            return
        newest = next(reversed(self._zero))
        step = next(reversed(self._zero[newest]))
        for lap in [lap for lap in laps if lap <= newest]:
            steps, times = laps[lap]
            reached = bisect_right(steps, step) if lap == newest else len(steps)
            self._take_leads(rank, self._zero.get(lap, {}), steps[:reached], times[:reached])
            del steps[:reached], times[:reached]
            self._waiting_steps -= reached
            if not steps:
                del laps[lap]

    def _take_leads(
        self, rank: int, zero: Mapping[int, float], steps: Sequence[int], times: Sequence[float]
    ) -> None:
        shared = (
            t - zero[step] for step, t in zip(reversed(steps), reversed(times), strict=True) if step in zero
        )
        newest = list(islice(shared, _SHARED_STEPS))
        if newest:
            self._leads.setdefault(rank, deque(maxlen=_SHARED_STEPS)).extend(reversed(newest))

    def _forget_zero(self) -> None:
        """Keep the newest steps of rank 0 alone."""
        excess = self._zero_steps - _ZERO_STEPS
        for lap in list(self._zero):
            times = self._zero[lap]
            if len(times) > excess:
                self._zero[lap] = dict(islice(times.items(), excess, None))
                break
            excess -= len(times)
            del self._zero[lap]
        self._zero_steps = _ZERO_STEPS

    def _forget_waiting(self) -> None:
        """Keep the newer half of what each rank completed."""
        for laps in self._waiting.values():
            excess = sum(len(steps) for steps, _ in laps.values()) // 2
            for lap, (steps, times) in list(laps.items()):
                gone = min(excess, len(steps))
                excess -= gone
                self._waiting_steps -= gone
                del steps[:gone], times[:gone]
                if not steps:
                    del laps[lap]

    def lead_s(self, rank: int) -> float | None:
        """Seconds that this rank is ahead of rank 0 by its own steps; None before the first shared one."""
        if rank == 0:
            return 0.0
        self._compare_rank(rank)  # who asks after each line of each rank cannot wait for all of them
        leads = self._leads.get(rank)
        return median(leads) if leads else None

    def leads_s(self, host_of: Mapping[int, str | None]) -> dict[int, float]:
        """Seconds by which each rank's host is ahead of rank 0's; 0 where nothing is known.

        Ranks whose host is unknown stand for themselves.
        """
        self._compare()
        by_host: dict[str, list[float]] = {}
        for rank, leads in self._leads.items():
            by_host.setdefault(_host(rank, host_of), []).append(median(leads))
        ahead = {host: median(leads) for host, leads in by_host.items()}
        ahead[_host(0, host_of)] = 0.0
        return {rank: ahead.get(_host(rank, host_of), 0.0) for rank in host_of}


def _host(rank: int, host_of: Mapping[int, str | None]) -> str:
    return host_of.get(rank) or f"rank {rank}"
