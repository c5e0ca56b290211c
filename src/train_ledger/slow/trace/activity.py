"""How much of the time does the GPU compute, communicate, copy and do nothing?

Plain interval algebra over what was launched before the last step began, since that one may have been
recorded in part, or over the whole trace where not even two steps are marked. What was launched before the
recording began is left out with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.intervals import both, length_ns, union, without
from train_ledger.slow.trace.launching import Launching, launching
from train_ledger.slow.trace.reading.names import GpuClass
from train_ledger.slow.trace.reading.trace import Spans, Trace

__all__ = ["Activity", "activity"]


@dataclass(frozen=True, slots=True)
class Activity:
    """Nanoseconds; a moment in which the GPU computes counts as compute, whatever else it does besides.

    `span_ns` is from the first activity to the last; `comm_exposed_ns` is communication without computation,
    `memory_ns` copies without either, `overlap_percent` how much of the communication was behind computation,
    None where there was none.
    """

    span_ns: int
    compute_ns: int
    comm_ns: int
    comm_exposed_ns: int
    memory_ns: int
    idle_ns: int
    overlap_percent: float | None


def activity(trace: Trace, launched: Launching | None = None) -> Activity:
    """What the GPU of one rank did; `launched` is looked for where it is not at hand."""
    gpu = trace.gpu
    if len(trace.steps) > 1:
        gpu = gpu.only(_launched_in_time(trace, launched or launching(trace)))
    if not len(gpu):
        return Activity(0, 0, 0, 0, 0, 0, None)
    compute = _of(gpu, GpuClass.COMPUTE)
    communication = _of(gpu, GpuClass.COMMUNICATION)
    exposed = without(communication, compute)
    memory = without(without(_of(gpu, GpuClass.MEMORY), compute), communication)
    span_ns = int(gpu.end.max() - gpu.start.min())
    busy_ns = length_ns(compute) + length_ns(exposed) + length_ns(memory)
    comm_ns = length_ns(communication)
    hidden_ns = length_ns(both(communication, compute))
    return Activity(
        span_ns=span_ns,
        compute_ns=length_ns(compute),
        comm_ns=comm_ns,
        comm_exposed_ns=length_ns(exposed),
        memory_ns=length_ns(memory),
        idle_ns=span_ns - busy_ns,
        overlap_percent=100 * hidden_ns / comm_ns if comm_ns else None,
    )


def _of(gpu: Spans, kind: GpuClass) -> npt.NDArray[np.int64]:
    chosen = gpu.kind == kind
    return union(gpu.start[chosen], gpu.end[chosen])


def _launched_in_time(trace: Trace, launched: Launching) -> npt.NDArray[np.bool_]:
    """Which activities were launched, as far as is recorded, before the last step began."""
    last = max(start for _, start, _ in trace.steps)
    return np.asarray(launched.is_known & (launched.at < last), dtype=bool)
