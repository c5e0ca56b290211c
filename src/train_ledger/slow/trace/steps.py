"""From when to when does a step last on the GPU?

The host runs ahead: a step's kernels may run when the host's mark of that step is long over. So a step
begins on the GPU with the first activity that was launched within it on the host, and ends where the next one
begins. The windows touch: together they are all the time from the first to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.launching import Launching
from train_ledger.slow.trace.period import period_starts
from train_ledger.slow.trace.reading.trace import Trace

__all__ = ["Cut", "Window", "windows"]


@dataclass(frozen=True, slots=True)
class Window:
    """One step on the GPU, in nanoseconds; `step` is None where the whole trace stands for it."""

    step: int | None
    start: int
    end: int

    @property
    def length_ns(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Cut:
    """The windows, and how they were found: what a person has to know of them, "" where nothing.

    `astray` is the part of the GPU's work that ran outside of the window of the step that launched it.
    """

    windows: tuple[Window, ...]
    remark: str = ""
    astray: float = 0.0


_NEVER = np.iinfo(np.int64).max
_Marks = Sequence[tuple[int, int, int]]
_NO_STEPS = "no steps are marked, so the whole trace is one window; mark them with profiler.step()"


def windows(trace: Trace, launched: Launching, *, annotation: str = "", with_last: bool = False) -> Cut:
    """The steps of a trace on its GPU.

    By the profiler's step marks; where it has none by the marks called `annotation`, else by those of the
    optimizer's step, which ends one, and where it has none of those either by the kernels that repeat. The
    last step, which may have been recorded in part, is left out unless `with_last` or it is the only one.
    """
    if not len(trace.gpu):
        return Cut((), "nothing of a GPU was recorded (torch.profiler: activities=[CPU, CUDA])")
    marks, remark = _marks(trace, annotation)
    begins = _begins(trace, launched, marks)
    if not marks and not annotation and (starts := period_starts(trace)):
        return _periods(trace, starts, with_last=with_last)
    if not begins:
        return _whole(trace, remark if not marks else "no launch was recorded within a step: one window")
    last = Window(begins[-1][0], begins[-1][1], max(_end_of_last(trace, launched, marks), begins[-1][1]))
    found = [Window(step, start, end) for (step, start), (_, end) in pairwise(begins)]
    if with_last or not found:
        found.append(last)
    kept = tuple(window for window in found if window.length_ns > 0)
    without_time = len(marks) - len(begins) + len(found) - len(kept)
    remarks = filter(None, (remark, _of_merged(without_time, len(marks))))
    return Cut(kept, "; ".join(remarks), _astray(trace, launched, marks, kept))


def _of_merged(steps: int, marked: int) -> str:
    if not steps:
        return ""
    return f"{steps} of {marked} marked steps have no time of their own on the GPU: neighbours have it"


def _periods(trace: Trace, starts: Sequence[int], *, with_last: bool) -> Cut:
    found = [Window(number, start, end) for number, (start, end) in enumerate(pairwise(starts))]
    if with_last:
        found.append(Window(len(found), starts[-1], int(trace.gpu.end.max())))
    remark = (
        "no steps are marked: what its kernels repeat is taken for a step; mark them with profiler.step()"
    )
    return Cut(tuple(it for it in found if it.length_ns > 0), remark)


def _whole(trace: Trace, remark: str) -> Cut:
    whole = Window(None, int(trace.gpu.start.min()), int(trace.gpu.end.max()))
    return Cut((whole,), remark) if whole.length_ns else Cut((), "what was recorded of the GPU took no time")


def _marks(trace: Trace, annotation: str) -> tuple[_Marks, str]:
    if annotation:
        named = [
            (number, int(trace.marks.start[place]), int(trace.marks.end[place]))
            for number, place in enumerate(_places_of(trace, annotation))
        ]
        return named, "" if named else f"no mark is called {annotation!r}: one window"
    if trace.steps:
        return trace.steps, ""
    ends = [int(trace.marks.end[place]) for place in _places_of(trace, "Optimizer.step#", is_start=True)]
    if len(ends) < 2:
        return (), _NO_STEPS
    first = int(trace.launches.start.min()) if len(trace.launches) else ends[0]
    begins = [min(first, ends[0] - 1), *ends[:-1]]
    marks = [(number, begin, end) for number, (begin, end) in enumerate(zip(begins, ends, strict=True))]
    return marks, "no steps are marked: each ends with a step of the optimizer"


def _places_of(trace: Trace, name: str, *, is_start: bool = False) -> list[int]:
    fits = [
        number for number, it in enumerate(trace.names) if (it.startswith(name) if is_start else it == name)
    ]
    return [int(place) for place in np.flatnonzero(np.isin(trace.marks.name, fits))]


def _begins(trace: Trace, launched: Launching, marks: _Marks) -> list[tuple[int, int]]:
    """(step, first moment on the GPU) of each step that launched anything, none before the one before it."""
    of_mark = _of_mark(launched, marks)
    first = np.full(len(marks), _NEVER)
    known = of_mark >= 0
    np.minimum.at(first, of_mark[known], trace.gpu.start[known])
    launches = np.flatnonzero(first != _NEVER)
    begins = np.maximum.accumulate(first[launches])
    return [(marks[number][0], int(begin)) for number, begin in zip(launches.tolist(), begins, strict=True)]


def _of_mark(launched: Launching, marks: _Marks) -> npt.NDArray[np.int64]:
    """Within which mark each activity was launched, −1 where that is not known."""
    starts = np.array([start for _, start, _ in marks], dtype=np.int64)
    return np.where(launched.is_known, np.searchsorted(starts, launched.at, side="right") - 1, -1)


def _astray(trace: Trace, launched: Launching, marks: _Marks, cut: Sequence[Window]) -> float:
    """Of what the steps in these windows launched, how much ran in another's window."""
    of_mark = _of_mark(launched, marks)
    first = {step: place for place, (step, _, _) in reversed(list(enumerate(marks)))}
    bounds = np.zeros((len(marks) + 1, 2), dtype=np.int64)
    for window in cut:
        if window.step is not None:
            bounds[first[window.step]] = window.start, window.end
    mine = np.flatnonzero((of_mark >= 0) & (bounds[of_mark, 1] > 0))
    start, end = trace.gpu.start[mine], trace.gpu.end[mine]
    inside = np.minimum(end, bounds[of_mark[mine], 1]) - np.maximum(start, bounds[of_mark[mine], 0])
    whole = int((end - start).sum())
    return 1 - int(inside.clip(min=0).sum()) / whole if whole else 0.0


def _end_of_last(trace: Trace, launched: Launching, marks: _Marks) -> int:
    """Where what the last step launched ends, as far as it was recorded."""
    start, end = marks[-1][1], marks[-1][2]
    within = launched.is_known & (launched.at >= start) & (launched.at < max(end, start + 1))
    chosen = within if within.any() else launched.is_known
    return int(trace.gpu.end[chosen].max()) if chosen.any() else int(trace.gpu.end.max())
