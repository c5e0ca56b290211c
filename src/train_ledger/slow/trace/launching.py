"""When, and on which thread, was each activity of the GPU launched?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.reading.trace import Trace

__all__ = ["Launching", "launching"]


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
    told = np.flatnonzero(launches.correlation >= 0)
    if not len(told) or not len(gpu):
        none = np.zeros(len(gpu), dtype=np.int64)
        return Launching(none, none, none.astype(bool))
    order = told[np.lexsort((launches.start[told], launches.correlation[told]))]
    correlations = launches.correlation[order]
    place = np.searchsorted(correlations, gpu.correlation, side="left").clip(max=len(order) - 1)
    is_known = correlations[place] == gpu.correlation
    chosen = order[place]
    return Launching(launches.start[chosen], launches.place[chosen], is_known & (gpu.correlation >= 0))
