"""What has to be kept of every fact so that the whole run can be drawn?

Takes the facts of a run as `ledger.Fold` does, and only counts: nothing here judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train_ledger.facts import Event, Fact, Fault, HardwareReading, Step, Stretch
from train_ledger.ledger.history.bins import Bins
from train_ledger.ledger.history.fields import CURVES, GPU_STRIPS, STRIPS
from train_ledger.ledger.history.rows import Rows

__all__ = ["History", "Mark"]

Told = tuple[int, float, tuple[float | None, ...]]
"""A step, when it was completed, and what was told of `CURVES`."""

_AT_ONCE = 64
_LARGEST = 1e200
"""What is told and is larger is counted as no number: the sum of a bin of them would be none."""
_MOST_MARKS = 5000
_MOST_ATTEMPTS = 64
_MARKED = frozenset(
    {"run_start", "run_end", "ckpt_saved", "ckpt_failed", "ckpt_loaded", "eval_start", "exception"}
)
_EACH_RANK = frozenset({"exception"})
"""Marks of which each rank's own is kept; of others one for all that tell the same."""

_OF_HOSTS = frozenset({"xid", "killed"})

_curves_of = attrgetter(*CURVES)
_STRIPS_AT = [CURVES.index(name) for name in STRIPS]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something happened at `t` (unix seconds, by the clock of whoever told it), after this step.

    `name` is an event's, or a fault's code; `rank` is None where it is of all.
    """

    t: float
    name: str
    attempt: int
    step: int | None = None
    rank: int | None = None
    host: str | None = None


class History:
    """Curves of each attempt, strips of the ranks of the newest, strips of the GPUs, and marks.

    `curves` maps an attempt to its bins, of the newest 64 attempts; `left_out` counts those before them.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.curves: dict[int, Bins] = {}
        self.strips = Rows(len(STRIPS))
        self.strips_attempt = -1
        self.gpus = Rows(len(GPU_STRIPS))
        self.marks: list[Mark] = []
        self.left_out = 0
        self._marked: set[tuple[object, ...]] = set()
        self._waiting: dict[tuple[int, int], list[Told]] = {}

    # -- what is taken

    def add(self, fact: Fact) -> None:
        """Take one fact."""
        if isinstance(fact, Step):
            self._wait(fact.attempt, fact.rank or 0, [_told(fact)])
        elif isinstance(fact, Event):
            if fact.name in _MARKED:
                self._mark(fact.t, Mark(fact.t, fact.name, fact.attempt, fact.step, fact.rank, fact.host))
        else:
            self._mark_fault(fact)

    def add_stretch(self, stretch: Stretch) -> None:
        """Take steps in a row, to the same history as one by one."""
        told = [(it.step, it.t, _curves_of(it)) for it in stretch.earlier]
        told.append(_told(stretch.last))
        self._wait(stretch.last.attempt, stretch.last.rank or 0, told)

    def add_hardware(self, fact: HardwareReading | Fault) -> None:
        """Take a look at a GPU, or a kernel's line of one."""
        if isinstance(fact, Fault):
            self._mark_fault(fact)
        elif fact.gpu is not None:
            values = np.array([[fact.values.get(name, math.nan)] for name in GPU_STRIPS], float)
            values[np.abs(values) > _LARGEST] = np.nan
            self.gpus.add(f"{fact.host} {fact.gpu}", np.array([int(fact.t)]), values)

    def _wait(self, attempt: int, rank: int, told: Sequence[Told]) -> None:
        """Steps that come one by one are put into bins a few at a time, which costs as much as one."""
        waiting = self._waiting.setdefault((attempt, rank), [])
        waiting.extend(told)
        if len(waiting) >= _AT_ONCE:
            self._put(attempt, rank, waiting)
            waiting.clear()

    def put_curves(self, attempt: int, arrays: dict[str, NDArray[Any]], *, base: int, width: int) -> None:
        """Take over what was kept of an attempt; raises ValueError or KeyError where it does not fit."""
        bins = self.curves[attempt] = Bins(len(CURVES))
        bins.put(arrays, base=base, width=width)

    def put_marks(self, marks: Iterable[Mark]) -> None:
        """Take over the marks that were kept."""
        self.marks = [*marks]
        self._marked = {_key(mark) for mark in self.marks}

    def settle(self) -> None:
        """Put what still waits into bins; call it before anything is looked at."""
        for (attempt, rank), waiting in self._waiting.items():
            if waiting:
                self._put(attempt, rank, waiting)
        self._waiting.clear()

    def _put(self, attempt: int, rank: int, waiting: Iterable[Told]) -> None:
        for row in _rising(waiting):
            steps = np.array([it[0] for it in row], np.int64)
            times = np.array([it[1] for it in row], float)
            values = np.array([it[2] for it in row], float).T
            odd = np.abs(values) > _LARGEST
            values[odd] = np.nan
            self._curves_of(attempt).add(rank, steps, times, values, odd if odd.any() else None)
            if attempt >= self.strips_attempt:
                self._strips_of(attempt).add(str(rank), steps, values[_STRIPS_AT])

    def _curves_of(self, attempt: int) -> Bins:
        bins = self.curves.get(attempt)
        if bins is None:
            bins = self.curves[attempt] = Bins(len(CURVES))
            while len(self.curves) > _MOST_ATTEMPTS:
                del self.curves[min(self.curves)]
                self.left_out += 1
        return bins

    def _strips_of(self, attempt: int) -> Rows:
        if attempt > self.strips_attempt:
            self.strips, self.strips_attempt = Rows(len(STRIPS)), attempt
        return self.strips

    def _mark_fault(self, fact: Fault) -> None:
        self._mark(fact.t, Mark(fact.t or 0.0, fact.fault, fact.attempt, fact.step, fact.rank, fact.host))

    def _mark(self, t: float | None, mark: Mark) -> None:
        own = mark if mark.name in _EACH_RANK else replace(mark, rank=None)
        if t is None or not math.isfinite(t) or _key(own) in self._marked:
            return
        self._marked.add(_key(own))
        self.marks.append(own)
        if len(self.marks) > 2 * _MOST_MARKS:
            self.put_marks(self.marks[_MOST_MARKS:])


def _key(mark: Mark) -> tuple[object, ...]:
    """What ranks tell of one and the same event has the same."""
    if mark.name in _OF_HOSTS:
        return mark.name, mark.host, round(mark.t)
    return mark.name, mark.attempt, mark.step, mark.rank


def _rising(told: Iterable[Told]) -> Iterable[list[Told]]:
    """The steps cut where they do not rise: a rank that went back tells them again."""
    row: list[Told] = []
    for each in told:
        if row and each[0] <= row[-1][0]:
            yield row
            row = []
        row.append(each)
    if row:
        yield row


def _told(step: Step) -> Told:
    """What is told and is no finite number becomes infinite, since nan stands for what is not told."""
    values = (step.values.get(name) for name in CURVES)
    return step.step, step.t, tuple(math.inf if it is not None and it != it else it for it in values)
