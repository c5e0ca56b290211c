"""What time is it really, when every host has its own clock?

Two corrections make all times those of rank 0's host. A clock that jumps within a rank's own lines is
carried on as if it had not (`RankClock`). What then stands between a host and rank 0's is read off the steps
that both completed, since in synchronous training all ranks complete a step together (`HostClocks`); in a
hang only some completed the last one, which is why it takes shared steps.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from statistics import median

from train_ledger.facts import Step

__all__ = ["HostClocks", "RankClock", "StepKey"]

StepKey = tuple[int, int, int]
"""(attempt, lap, step); the lap counts how often the step went back within an attempt."""

_JUMP_S = 5.0
"""Lines of one rank may come out of order by less; more is a jump."""

_SHARED_STEPS = 5
_ZERO_STEPS = 20_000
_PENDING_TIMES = 200_000


class RankClock:
    """Carries one rank's clock over its jumps.

    A jump back shows by itself. A jump forward looks like a pause, so it counts only where nothing explains a
    pause and the rank's writer measures `step_time_s` from step to step, by a timer that no clock moves (our
    monitor does, and says run_start): a loop that leaves checkpoints out must not lose their duration.
    """

    __slots__ = ("_last_step", "_last_t", "shift_s", "steady_timer")

    def __init__(self) -> None:
        self.shift_s = 0.0
        self.steady_timer = False
        self._last_t: float | None = None
        self._last_step: int | None = None

    def new_attempt(self, *, same_host: bool) -> None:
        self._last_step = None
        if not same_host:
            self.shift_s = 0.0
            self._last_t = None

    def of_event(self, t: float) -> float:
        """The carried time of a line that is no step."""
        t += self.shift_s
        if self._last_t is not None and t < self._last_t - _JUMP_S:
            self.shift_s += self._last_t - t
            t = self._last_t
        self._last_t = t if self._last_t is None else max(t, self._last_t)
        return t

    def of_step(self, step: Step, previous_t: float | None, *, paused: bool = False) -> float:
        """The carried time of a completed step.

        `previous_t` is that of the rank's step before, `paused` whether it saved or evaluated in between.
        """
        t = step.t + self.shift_s
        if previous_t is not None and self._last_step is not None and step.step > self._last_step:
            jump = self._jump(t - previous_t, step, step.step - self._last_step, paused)
            self.shift_s -= jump
            t -= jump
        if self._last_step is None or step.step > self._last_step:
            self._last_step = step.step
        self._last_t = t if self._last_t is None else max(t, self._last_t)
        return t

    def _jump(self, passed_s: float, step: Step, steps: int, paused: bool) -> float:
        timed_s = step.values.get("step_time_s", math.nan)
        timed = self.steady_timer and not paused and steps == 1 and math.isfinite(timed_s) and timed_s >= 0
        if timed and abs(passed_s - timed_s) > _JUMP_S:
            return passed_s - timed_s
        if passed_s < -_JUMP_S:
            return passed_s - (timed_s * steps if math.isfinite(timed_s) and timed_s >= 0 else 0.0)
        return 0.0


class HostClocks:
    """How far each rank's host is off the clock of rank 0's host, from the newest steps both completed."""

    def __init__(self) -> None:
        self._zero: dict[StepKey, float] = {}
        self._pending: dict[StepKey, dict[int, float]] = {}
        self._leads: dict[int, deque[float]] = {}
        self._pending_times = 0

    def completed(self, rank: int, key: StepKey, t: float) -> None:
        """A rank completed a step at `t` on its own clock."""
        if rank == 0:
            self._zero_completed(key, t)
        elif key in self._zero:
            self._lead(rank, t - self._zero[key])
        else:
            self._wait(rank, key, t)

    def _wait(self, rank: int, key: StepKey, t: float) -> None:
        self._pending.setdefault(key, {})[rank] = t
        self._pending_times += 1
        while self._pending_times > _PENDING_TIMES:
            self._pending_times -= len(self._pending.pop(next(iter(self._pending))))

    def _zero_completed(self, key: StepKey, t: float) -> None:
        if key in self._zero:
            return
        self._zero[key] = t
        if len(self._zero) > _ZERO_STEPS:
            del self._zero[next(iter(self._zero))]
        waiting = self._pending.pop(key, {})
        self._pending_times -= len(waiting)
        for rank, other_t in waiting.items():
            self._lead(rank, other_t - t)

    def _lead(self, rank: int, lead_s: float) -> None:
        leads = self._leads.get(rank)
        if leads is None:
            leads = self._leads[rank] = deque(maxlen=_SHARED_STEPS)
        leads.append(lead_s)

    def lead_s(self, rank: int) -> float | None:
        """Seconds that this rank is ahead of rank 0 by its own steps; None before the first shared one."""
        if rank == 0:
            return 0.0
        leads = self._leads.get(rank)
        return median(leads) if leads else None

    def leads_s(self, host_of: Mapping[int, str | None]) -> dict[int, float]:
        """Seconds by which each rank's host is ahead of rank 0's; 0 where nothing is known.

        Ranks whose host is unknown stand for themselves.
        """
        by_host: dict[str, list[float]] = {}
        for rank, leads in self._leads.items():
            by_host.setdefault(_host(rank, host_of), []).append(median(leads))
        ahead = {host: median(leads) for host, leads in by_host.items()}
        ahead[_host(0, host_of)] = 0.0
        return {rank: ahead.get(_host(rank, host_of), 0.0) for rank in host_of}


def _host(rank: int, host_of: Mapping[int, str | None]) -> str:
    return host_of.get(rank) or f"rank {rank}"
