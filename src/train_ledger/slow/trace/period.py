"""Of how many kernels does a step consist, where nobody marked the steps?

Steps of a training run the same kernels in the same order on their main stream. The shortest period with
which nearly all kernels of the trace repeat is taken for the step; where there is none, or all kernels are
alike, nothing is guessed. A period of layers or of micro-batches fits less well than that of steps, since
what stands between them is not repeated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.reading.names import GpuClass
from train_ledger.slow.trace.reading.trace import Trace

__all__ = ["period_starts"]

_FEWEST_PERIODS = 5
_FEWEST_NAMES = 3
_FEWEST_KERNELS = 6
_FITS = 0.99
_NEARLY = 0.002
_RAREST = 8


def period_starts(trace: Trace) -> list[int]:
    """The first moment on the GPU of each period, from the first to the last; [] where nothing repeats.

    A period begins behind the longest pause that recurs in it.
    """
    computes = trace.gpu.kind == GpuClass.COMPUTE
    if not computes.any():
        return []
    streams, of_stream = np.unique(trace.gpu.place[computes], return_counts=True)
    chosen = np.flatnonzero(computes & (trace.gpu.place == streams[of_stream.argmax()]))
    names, starts, ends = (column[chosen] for column in (trace.gpu.name, trace.gpu.start, trace.gpu.end))
    if len(names) < _FEWEST_PERIODS * _FEWEST_KERNELS or len(np.unique(names)) < _FEWEST_NAMES:
        return []
    period = _period(names)
    if period is None or len(np.unique(names[:period])) < _FEWEST_NAMES:
        return []
    first = _phase(starts, ends, period)
    return [int(it) for it in starts[first::period]]


def _period(names: npt.NDArray[np.int64]) -> int | None:
    """The shortest shift that brings nearly every kernel onto one of its name."""
    fits = {shift: float(np.mean(names[shift:] == names[:-shift])) for shift in _shifts(names)}
    if not fits or (best := max(fits.values())) < _FITS:
        return None
    return min(shift for shift, fit in fits.items() if fit >= best - _NEARLY)


def _shifts(names: npt.NDArray[np.int64]) -> set[int]:
    """Distances at which the rarest kernels that recur come again, and few times those."""
    numbers, counts = np.unique(names, return_counts=True)
    recurring = np.flatnonzero(counts >= _FEWEST_PERIODS)
    rarest = numbers[recurring[np.argsort(counts[recurring], kind="stable")[:_RAREST]]]
    found: set[int] = set()
    for number in rarest.tolist():
        places = np.flatnonzero(names == number)
        for count in (1, 2, 3, 4):
            found.add(int(np.median(places[count:] - places[:-count])))
    return {it for it in found if _FEWEST_KERNELS <= it <= len(names) // _FEWEST_PERIODS}


def _phase(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], period: int) -> int:
    """Which kernel of the period comes behind the longest pause, by the median over the periods."""
    pauses = np.concatenate(([0], starts[1:] - ends[:-1]))
    whole = len(pauses) // period * period
    usual = np.median(pauses[:whole].reshape(-1, period), axis=0)
    return int(np.argmax(usual))
