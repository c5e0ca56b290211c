"""Did the run come back from a restart as it was before: does its loss join on, and how much was done again?

Of each lap of an attempt the first losses and the last ones are kept, so that the begin of a lap can be held
against the end of the one before it, however long both are.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from train_ledger.facts import PlainStep

__all__ = ["Joining", "LapLosses"]

_loss_of = attrgetter("loss")

_KEPT = 1024
_SAME = 0.01
"""Of the loss: sums in another order change it by far less, weights that were not loaded by more."""

_CHANGES = 2.0
"""Other data at a step changes its loss by about as much as one step differs from the next."""

_USUAL_STEPS = 100
"""By so many steps before the restart it is known how the loss usually changes."""


class Joining(NamedTuple):
    """How the loss of the steps done again compares; `joins_on` is None where `why` it cannot be told."""

    joins_on: bool | None
    compared: int = 0
    difference: float | None = None
    tolerance: float | None = None
    why: str | None = None


class LapLosses:
    """What one rank told of its loss in the first steps of a lap and in the last ones."""

    __slots__ = ("_first_losses", "_first_steps", "_last_losses", "_last_steps", "_shown", "_told")

    def __init__(self) -> None:
        self._first_steps: list[int] = []
        self._first_losses: list[float | None] = []
        self._last_steps: deque[int] = deque(maxlen=_KEPT)
        self._last_losses: deque[float | None] = deque(maxlen=_KEPT)
        self._told = 0
        self._shown: tuple[tuple[int, ...], Joining] | None = None

    def add(self, step: int, loss: float | None) -> None:
        """What the line of a completed step says."""
        self._told += 1
        if len(self._first_steps) < _KEPT:
            self._first_steps.append(step)
            self._first_losses.append(loss)
        else:
            self._last_steps.append(step)
            self._last_losses.append(loss)

    def add_all(self, steps: Sequence[PlainStep], numbers: Sequence[int]) -> None:
        """As `add` for the lines of steps in a row, whose `numbers` rise."""
        self._told += len(steps)
        if room := _KEPT - len(self._first_steps):
            self._first_steps.extend(numbers[:room])
            self._first_losses.extend(map(_loss_of, steps[:room]))
            steps, numbers = steps[room:], numbers[room:]
        self._last_steps.extend(numbers[-_KEPT:])
        self._last_losses.extend(map(_loss_of, steps[-_KEPT:]))

    def redone(self, reached: int) -> int:
        """How many steps up to `reached`, where the run had come before, this lap does once more."""
        first, *more = self._first_steps[:2]
        stride = more[0] - first if more else 1
        return max(0, reached - max(0, first - stride))

    def joining(self, before: Sequence[LapLosses], reached: int) -> Joining:
        """How this lap, which has passed `reached`, compares with those before it, oldest first."""
        key = (reached, *(lap._told for lap in before))  # what comes behind `reached` says nothing more
        if self._shown is None or self._shown[0] != key:
            was = {step: loss for lap in before for step, loss in lap._kept() if loss is not None}
            again = {step: loss for step, loss in self._begin() if loss is not None and step <= reached}
            self._shown = (key, _compared(again, was))
        return self._shown[1]

    def look_again(self) -> None:
        """The laps before it are others now."""
        self._shown = None

    def _begin(self) -> Iterator[tuple[int, float | None]]:
        return zip(self._first_steps, self._first_losses, strict=True)

    def _kept(self) -> Iterator[tuple[int, float | None]]:
        yield from self._begin()
        yield from zip(self._last_steps, self._last_losses, strict=True)


def _compared(again: Mapping[int, float], before: Mapping[int, float]) -> Joining:
    """The losses of the steps that were done again against those of all earlier steps that are kept."""
    if not again or not before:
        return Joining(None, why="loss: not told of a step both before the restart and behind it")
    pairs = [
        (before[step], loss) for step, loss in again.items() if math.isfinite(before.get(step, math.nan))
    ]
    if not pairs:
        return Joining(None, why="loss: of no step that was done again there is a finite one from before")
    difference = median(abs(now - was) if math.isfinite(now) else math.inf for was, now in pairs)
    newest = sorted(step for step, loss in before.items() if math.isfinite(loss))[-_USUAL_STEPS:]
    tolerance = _tolerance([before[step] for step in newest])
    told = difference if math.isfinite(difference) else None
    return Joining(difference <= tolerance, len(pairs), told, tolerance)


def _tolerance(losses: Sequence[float]) -> float:
    """By how much a loss may differ from what it was at the same step."""
    changes = [abs(after - before) for before, after in pairwise(losses)]
    return max(_SAME * abs(median(losses)), _CHANGES * median(changes) if changes else 0.0)
