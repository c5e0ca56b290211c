"""How long do one rank's steps take?

By the rank's own timer where its lines tell one, else from step to step. The first steps of an attempt
compile, tune and fill caches, and those that saved a checkpoint or followed a pause are none to go by.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub
from statistics import median, median_low

from train_ledger.facts import PlainStep, Step

__all__ = ["LONGEST_STEP_S", "Pace", "Timing", "timings", "told_s"]

_WINDOW = 20
_WARM_UP_STEPS = 2
_STRIDES = 8

LONGEST_STEP_S = 86_400.0
"""No step takes a day: a timer that says so is broken, or counts in another unit."""


def told_s(seconds: float | None) -> float | None:
    """What a step's own timer told, where a step can take so long.

    >>> told_s(12.5), told_s(-1.0), told_s(1e308), told_s(float("nan"))
    (12.5, None, None, None)
    """
    return seconds if seconds is not None and 0 <= seconds < LONGEST_STEP_S else None


@dataclass(frozen=True, slots=True)
class Timing:
    """A step behind the warm-up, `stride` after the one before.

    `is_plain`: it saved no checkpoint and followed no pause; only then it has a duration, if it tells one.
    """

    stride: int
    is_plain: bool
    duration_s: float | None


class Pace:
    """The durations of the last steady steps, and what is known before there is one.

    `warm_up_s` is the longest of the first steps of this attempt.
    """

    __slots__ = ("_durations_s", "_steady_s", "_steps", "_strides", "warm_up_s")

    def __init__(self) -> None:
        self._durations_s: deque[float] = deque(maxlen=_WINDOW)
        self._steady_s: float | None = None
        self.begin_attempt()

    def begin_attempt(self) -> None:
        """Warm up again; how long steady steps last is kept."""
        self._strides: deque[int] = deque(maxlen=_STRIDES)
        self.warm_up_s = 0.0
        self._steps = 0

    def went_back(self) -> None:
        """The step went back, so the next ones warm up again."""
        self._steps = 0

    @property
    def steady_step_s(self) -> float | None:
        """The median of the last steady steps' durations; None before the first steady step."""
        if self._steady_s is None and self._durations_s:
            self._steady_s = median(self._durations_s)
        return self._steady_s

    @property
    def usual_step_s(self) -> float | None:
        """The lower median: of two steps, the one that stood is not the usual one."""
        return median_low(self._durations_s) if self._durations_s else None

    @property
    def told(self) -> int:
        """How many steps were told since the attempt began, or since the step went back."""
        return self._steps

    @property
    def stride(self) -> int:
        """By how much the step count rises from line to line: a rank may log every tenth step.

        Lines between the usual ones (of an evaluation) make it no smaller, lines that were lost no larger.
        """
        return max(self._strides, default=1) if len(self._strides) < 3 else sorted(self._strides)[-2]

    @property
    def is_steady(self) -> bool:
        """Whether a step that follows now is behind the warm-up."""
        return self._steps >= _WARM_UP_STEPS

    def completed(self, steps: int = 1) -> None:
        """So many steps were completed."""
        self._steps += steps

    def timed(self, fact: Step, interval_s: float, stride: int, *, paused: bool) -> Timing | None:
        """A step came `stride` after the one before, `interval_s` later; `paused`: there was a phase between.

        To be told before `completed`. Returns None for a step that warms up.
        """
        self._strides.append(stride)
        duration_s = told_s(fact.values.get("step_time_s")) or interval_s / stride
        if not self.is_steady:
            self.warm_up_s = max(self.warm_up_s, duration_s)
            return None
        is_plain = not paused and not fact.values.get("ckpt_s", 0.0) > 0
        if not (is_plain and duration_s > 0):
            return Timing(stride, is_plain, None)
        self._durations_s.append(duration_s)
        self._steady_s = None
        return Timing(stride, is_plain, duration_s)

    def timed_at_once(
        self, steps: Sequence[PlainStep], times: Sequence[float], before: int, before_t: float
    ) -> None:
        """As `timed` for steady steps that follow `before` without a pause."""
        newest = [step.step for step in steps[-_STRIDES - 1 :]]
        numbers = newest if len(steps) > _STRIDES else [before, *newest]
        self._strides.extend(map(sub, numbers[1:], numbers))
        durations_s = [timed_s for step in steps[-_WINDOW:] if (timed_s := _own_s(step))]
        if len(durations_s) < _WINDOW:
            durations_s = _newest_s(steps, times, before, before_t)
        if durations_s:
            self._durations_s.extend(durations_s)
            self._steady_s = None


def timings(
    steps: Sequence[PlainStep], times: Sequence[float], before: int, before_t: float
) -> tuple[list[int], Sequence[float | None]]:
    """The stride and the duration, if any, of each of these steady steps, which follow `before` at once."""
    numbers = [before, *(step.step for step in steps)]
    strides = [*map(sub, numbers[1:], numbers)]
    own_s = [step.step_time_s for step in steps]
    saved = [True for step in steps if step.ckpt_s]
    if not saved and None not in own_s and min(own_s) > 0 and max(own_s) < LONGEST_STEP_S:  # type: ignore[type-var,operator]
        return strides, own_s
    intervals_s = map(sub, times, [before_t, *times[:-1]])
    return strides, [
        _duration_s(step, interval_s / stride)
        for step, interval_s, stride in zip(steps, intervals_s, strides, strict=True)
    ]


def _duration_s(step: PlainStep, interval_s: float) -> float | None:
    if (step.ckpt_s or 0.0) > 0:
        return None
    duration_s = told_s(step.step_time_s) or interval_s
    return duration_s if duration_s > 0 else None


def _own_s(step: PlainStep) -> float | None:
    """How long a step took by its own timer; None where it has none, or saved a checkpoint."""
    return None if (step.ckpt_s or 0.0) > 0 else told_s(step.step_time_s) or None


def _newest_s(
    steps: Sequence[PlainStep], times: Sequence[float], before: int, before_t: float
) -> list[float]:
    """The durations of the last ones that saved no checkpoint, oldest first."""
    durations_s: list[float] = []
    for place in range(len(steps) - 1, -1, -1):
        step = steps[place]
        if (step.ckpt_s or 0.0) > 0:
            continue
        previous, previous_t = (steps[place - 1].step, times[place - 1]) if place else (before, before_t)
        duration_s = _own_s(step) or (times[place] - previous_t) / (step.step - previous)
        if duration_s > 0:
            durations_s.append(duration_s)
        if len(durations_s) == _WINDOW:
            break
    return durations_s[::-1]
