"""What time is it really, when every host has its own clock?

Two corrections make all times those of rank 0's host. A clock that jumps within a rank's own lines is
carried on as if it had not (`RankClock`). What then stands between a host and rank 0's is read off the steps
that both completed, since in synchronous training all ranks complete a step together (`HostClocks`); in a
hang only some completed the last one, which is why it takes shared steps.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import sub
from statistics import median

from train_ledger.facts import PlainStep, Step
from train_ledger.ledger.pace import told_s

__all__ = ["HostClocks", "Lap", "RankClock"]

Lap = tuple[int, int]
"""(attempt, how often the step went back within it): steps rise within a lap."""

_JUMP_S = 5.0
"""Lines of one rank may come out of order by less; more is a jump."""

_STRAY_S = 3600.0
"""A single line that is so much too early tells a wrong time (0, say): the next one goes on as before."""

_SHARED_STEPS = 5
_ZERO_STEPS = 10_000
_WAITING_STEPS = 200_000


class RankClock:
    """Carries one rank's clock over its jumps.

    A jump back shows by itself. A jump forward looks like a pause, so it counts only where nothing explains a
    pause and the rank's writer measures `step_time_s` from step to step, by a timer that no clock moves (our
    monitor does, and says run_start): a loop that leaves checkpoints out must not lose their duration.
    """

    __slots__ = ("_fell_back_s", "_last_step", "_last_t", "shift_s", "steady_timer")

    def __init__(self) -> None:
        self.shift_s = 0.0
        self.steady_timer = False
        self._last_t: float | None = None
        self._last_step: int | None = None
        self._fell_back_s = 0.0

    def new_attempt(self, *, same_host: bool) -> None:
        self._last_step = None
        self._fell_back_s = 0.0
        if not same_host:
            self.shift_s = 0.0
            self._last_t = None

    def of_event(self, t: float) -> float:
        """The carried time of a line that is no step."""
        t += self.shift_s
        if self._last_t is not None:
            passed_s = t - self._last_t
            t = self._moved(t, passed_s, passed_s if passed_s < -_JUMP_S else 0.0)
        self._last_t = t if self._last_t is None else max(t, self._last_t)
        return t

    def of_step(self, step: Step, previous_t: float | None, *, paused: bool = False) -> float:
        """The carried time of a completed step.

        `previous_t` is that of the rank's step before, `paused` whether it saved or evaluated in between.
        """
        t = step.t + self.shift_s
        if previous_t is not None and self._last_step is not None and step.step > self._last_step:
            passed_s = t - previous_t
            t = self._moved(t, passed_s, self._jump(passed_s, step, step.step - self._last_step, paused))
        if self._last_step is None or step.step > self._last_step:
            self._last_step = step.step
        self._last_t = t if self._last_t is None else max(t, self._last_t)
        return t

    def _moved(self, t: float, passed_s: float, jump_s: float) -> float:
        """The time `t` of a line without its clock's jump, which is kept, or is taken back with this line."""
        if not jump_s and self._fell_back_s and passed_s > self._fell_back_s / 2:
            jump_s = self._fell_back_s
        self._fell_back_s = -jump_s if jump_s < -_STRAY_S else 0.0
        self.shift_s -= jump_s
        return t - jump_s

    def carried(
        self, steps: Sequence[PlainStep], previous_step: int, previous_t: float
    ) -> list[float] | None:
        """The carried times of rising steps that follow `previous_step`, if none falls back and none jumps.

        What `of_step` gives for each of them, of a rank that neither saves nor evaluates in between;
        `went_on` is to be told when they are folded.
        """
        times = [step.t + self.shift_s for step in steps]
        if self._last_step != previous_step or times[0] < previous_t or sorted(times) != times:
            return None
        if self._fell_back_s:
            return None
        if self.steady_timer:
            passed_s = [*map(sub, times, [previous_t, *times[:-1]])]
            if not _are_timed(passed_s, steps, previous_step):
                return None
        return times

    def went_on(self, step: int, t: float) -> None:
        """Steps up to this one were folded at their carried times, the last of which is `t`."""
        self._last_step = step
        self._last_t = t if self._last_t is None else max(t, self._last_t)

    def _jump(self, passed_s: float, step: Step, steps: int, paused: bool) -> float:
        timed_s = told_s(step.values.get("step_time_s"))
        timed = self.steady_timer and not paused and steps == 1
        if timed and timed_s is not None and abs(passed_s - timed_s) > _JUMP_S:
            return passed_s - timed_s
        if passed_s < -_JUMP_S:
            return passed_s - (timed_s or 0.0) * steps
        return 0.0


def _are_timed(passed_s: list[float], steps: Sequence[PlainStep], previous_step: int) -> bool:
    """Whether no step that follows its predecessor directly took other than its timer says."""
    timed_s = [step.step_time_s for step in steps]
    if _are_even(passed_s, timed_s):
        return True
    off_s = [*map(sub, passed_s, [math.inf if timed is None else timed for timed in timed_s])]
    if max(off_s) <= _JUMP_S and min(off_s) >= -_JUMP_S:
        return True
    numbers = [step.step for step in steps]
    strides = map(sub, numbers, [previous_step, *numbers[:-1]])
    return not any(
        stride == 1 and told_s(timed) is not None and abs(off) > _JUMP_S
        for stride, timed, off in zip(strides, timed_s, off_s, strict=True)
    )


def _are_even(passed_s: list[float], timed_s: list[float | None]) -> bool:
    """Whether the longest and the shortest of both lie together: then no step has to be looked at."""
    try:
        over_s, under_s = max(passed_s) - min(timed_s), min(passed_s) - max(timed_s)  # type: ignore[type-var,operator]
    except TypeError:  # one of them is None
        return False
    return over_s <= _JUMP_S and under_s >= -_JUMP_S


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
