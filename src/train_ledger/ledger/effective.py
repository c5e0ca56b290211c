"""How much time went into steps that brought the run further than ever before?

Everything else is lost: what is done once more after a restart, checkpoints that hold the training up,
evaluations, stalls, starting up, and by how much the first steps of an attempt take longer than a usual one.
Times are whole microseconds, so that it makes no difference whether steps are added one by one or many at
once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter, sub
from typing import NamedTuple

from train_ledger.facts import PlainStep

__all__ = ["Before", "StepTimes", "are_even"]

_MINUTE_S = 60.0
_STALL_US = 90_000_000
_STALL_FACTOR = 3
"""A step that took so much longer than usual, and longer than a minute and a half, stood most of the time."""

_EVEN_S = 89.0
_PENDING_STEPS = 8
_LONGEST_CKPT_S = 1e6


class Before(NamedTuple):
    """Where a rank stood before it completed a step: at `step`, completed at `t`.

    `paused`: it saved or evaluated since then; `steady`: it was behind the warm-up; `usual_s` is how long its
    steps usually took, None before the first steady one.
    """

    step: int
    t: float
    paused: bool
    steady: bool
    usual_s: float | None


class StepTimes:
    """The steps of one rank in one lap of an attempt, and the time that went into them.

    For each minute in which a step was completed it holds the last of them and the microseconds that had gone
    into steps by then; older minutes than are asked for are given up.
    """

    __slots__ = ("_base", "_minutes", "_pending", "_steps", "_totals", "last_step", "total_us")

    def __init__(self, step: int) -> None:
        self._base = step - 1
        self.last_step = step - 1
        self.total_us = 0
        self._pending: list[tuple[int, int]] = []
        self._minutes: list[int] = []
        self._steps: list[int] = []
        self._totals: list[int] = []

    @property
    def first_step(self) -> int:
        """The first of the steps."""
        return self._base + 1

    # -- what is folded

    @property
    def is_settled(self) -> bool:
        """Whether the steps that follow say nothing of those before any more."""
        return not self._pending

    def add(
        self,
        step: int,
        t: float,
        ckpt_s: float,
        before: Before | None,
        usual_s: float | None,
        told: int,
        *,
        since_t: float,
    ) -> None:
        """A step was completed at `t`; `before` is None for the first, which did not begin before `since_t`.

        `usual_s` is how long a usual step takes by now, and `told` how many were told.
        """
        steps = 1 if before is None else step - before.step
        passed_us = max(0, _us(t) - _us(since_t if before is None else before.t))
        usual_s = before.usual_s if before is not None and before.usual_s is not None else usual_s
        if before is None or _held_up(before, passed_us, steps):
            self._credit(steps, passed_us, usual_s)
        else:
            self.total_us += max(0, passed_us - _ckpt_us(ckpt_s))
        if usual_s is not None or told > _PENDING_STEPS:
            self._settle(usual_s)
        self.last_step = step
        self._mark(int(t // _MINUTE_S), step, self.total_us)

    def _credit(self, steps: int, passed_us: int, usual_s: float | None) -> None:
        """Of steps that took longer than usual for another reason: as long as they usually take."""
        if usual_s is None:
            self._pending.append((steps, passed_us))
        else:
            self.total_us += min(passed_us, _us(usual_s) * steps)

    def _settle(self, usual_s: float | None) -> None:
        pending, self._pending = self._pending, []
        for steps, passed_us in pending if usual_s is not None else ():
            self._credit(steps, passed_us, usual_s)

    def add_even(self, steps: Sequence[PlainStep], times: Sequence[float], before_t: float) -> None:
        """As `add` for steps for which `are_even` holds, and which came without a pause."""
        saved_us = [_ckpt_us(step.ckpt_s or 0.0) for step in steps] if _any_saved(steps) else None
        place, start_us, before_us = 0, self.total_us, _us(before_t)
        while place < len(times):
            minute = int(times[place] // _MINUTE_S)
            end = max(place + 1, bisect_left(times, (minute + 1) * _MINUTE_S, place))
            if saved_us is None:
                self.total_us = start_us + _us(times[end - 1]) - before_us
            else:
                for i in range(place, end):
                    passed_us = _us(times[i]) - (_us(times[i - 1]) if i else before_us)
                    self.total_us += max(0, passed_us - saved_us[i])
            self._mark(minute, steps[end - 1].step, self.total_us)
            place = end
        self.last_step = steps[-1].step

    def _mark(self, minute: int, step: int, total_us: int) -> None:
        if self._minutes and self._minutes[-1] >= minute:
            self._steps[-1], self._totals[-1] = step, total_us
            return
        self._minutes.append(minute)
        self._steps.append(step)
        self._totals.append(total_us)

    def forget(self, minutes: int) -> None:
        """Keep this many of the newest minutes at least, and twice as many at most."""
        if len(self._minutes) > 2 * minutes:
            for marks in (self._minutes, self._steps, self._totals):
                del marks[:-minutes]

    # -- what comes out

    def productive_us(self, reached: int | None) -> float:
        """Microseconds that went into steps beyond `reached`, where the run had come before."""
        return self._beyond(self.last_step, self.total_us, reached)

    def productive_us_at(self, t: float, reached: int | None) -> float:
        """The same by the minute in which `t` lies on the rank's own clock."""
        place = bisect_left(self._minutes, int(t // _MINUTE_S)) - 1
        return 0.0 if place < 0 else self._beyond(self._steps[place], self._totals[place], reached)

    def _beyond(self, step: int, total_us: int, reached: int | None) -> float:
        if reached is None or reached <= self._base:
            return float(total_us)
        # Only what all steps took is known of those long ago: each has the same share of it.
        return total_us * max(0, step - reached) / (step - self._base)


def are_even(times: Sequence[float], before_t: float) -> bool:
    """Whether none of the steps completed at these times took so long that it has to be looked at by itself.

    >>> are_even([11.0, 12.0], before_t=10.0), are_even([11.0, 200.0], before_t=10.0)
    (True, False)
    """
    if times[-1] - before_t <= _EVEN_S:
        return True
    return times[0] - before_t <= _EVEN_S and max(map(sub, times[1:], times), default=0.0) <= _EVEN_S


def _held_up(before: Before, passed_us: int, steps: int) -> bool:
    """Whether something else than steps took time, too."""
    if not before.steady or before.paused:
        return True
    return before.usual_s is not None and passed_us > max(
        _STALL_US, _STALL_FACTOR * _us(before.usual_s) * steps
    )


def _any_saved(steps: Sequence[PlainStep]) -> bool:
    return any(map(attrgetter("ckpt_s"), steps))


def _ckpt_us(seconds: float) -> int:
    return _us(min(seconds, _LONGEST_CKPT_S)) if seconds > 0 else 0


def _us(seconds: float) -> int:
    return round(seconds * 1e6) if math.isfinite(seconds) else 0
