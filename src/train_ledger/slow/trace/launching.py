"""When, and on which thread, was each activity of the GPU launched?"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.reading.trace import Spans, Trace

__all__ = ["Launching", "launching", "lost_launches"]

_NONE = -1
_LAUNCHES = re.compile(r"^(?:cuda|hip|cu|ze|ur)\w{0,24}(?:Launch|EnqueueKernel)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Launching:
    """For each activity of `Trace.gpu`: nanoseconds of its launch, its thread, and whether both are known.

    One launch of a graph launches many activities.
    """

    at: npt.NDArray[np.int64]
    thread: npt.NDArray[np.int64]
    is_known: npt.NDArray[np.bool_]


def launching(trace: Trace) -> Launching:
    """The launch of each activity, by the correlation that both carry; of several with one, the first."""
    launches, gpu = trace.launches, trace.gpu
    told = np.flatnonzero(_tells(launches))
    if not len(told) or not len(gpu):
        none = np.zeros(len(gpu), dtype=np.int64)
        return Launching(none, none, none.astype(bool))
    order = told[np.lexsort((launches.start[told], launches.correlation[told]))]
    correlations = launches.correlation[order]
    place = np.searchsorted(correlations, gpu.correlation, side="left").clip(max=len(order) - 1)
    is_known = correlations[place] == gpu.correlation
    chosen = order[place]
    return Launching(launches.start[chosen], launches.place[chosen], is_known)


def lost_launches(trace: Trace) -> tuple[int, int]:
    """(launches of kernels whose kernels are not there, launches of kernels).

    A profiler that runs out of its buffers drops kernels and says nothing.
    """
    fits = [number for number, name in enumerate(trace.names) if _LAUNCHES.search(name)]
    asked = np.isin(trace.launches.name, fits) & _tells(trace.launches)
    wanted, there = trace.launches.correlation[asked], np.sort(trace.gpu.correlation)
    if not len(there):
        return len(wanted), len(wanted)
    found = there[np.searchsorted(there, wanted).clip(max=len(there) - 1)] == wanted
    return int((~found).sum()), len(wanted)


def _tells(launches: Spans) -> npt.NDArray[np.bool_]:
    """Whose correlation says something: some profilers write 0 for all of which they do not know it."""
    told: npt.NDArray[np.bool_] = launches.correlation != _NONE
    if (launches.correlation == 0).sum() > 1:
        told &= launches.correlation != 0
    return told
