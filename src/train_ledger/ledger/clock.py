"""What time is it on one rank's clock, had it not jumped?

This is the first of two corrections that make all times those of rank 0's host; the second is what stands
between the hosts (see `host_clocks`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import sub

from train_ledger.facts import PlainStep, Step
from train_ledger.ledger.pace import told_s

__all__ = ["Lap", "RankClock"]

Lap = tuple[int, int]
"""(attempt, how often the step went back within it): steps rise within a lap."""

_JUMP_S = 5.0
"""Lines of one rank may come out of order by less; more is a jump."""

_STRAY_S = 3600.0
"""A single line that is so much too early tells a wrong time (0, say): the next one goes on as before."""


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
