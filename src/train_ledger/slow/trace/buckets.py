"""Where does the time of a step go?

Every moment of a window belongs to one bucket: what the GPU does goes before what it waits for – computation,
then recomputation, communication, copies – and idle time to its cause: data, then the host, then the rest. So
the buckets add up to the window to the nanosecond. A bucket that the trace cannot tell is None, and its time
stays in the one that `HELD_BY` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from train_ledger.slow.trace.gaps import dependency_bound, graph_bound, host_bound, short_gaps
from train_ledger.slow.trace.host_time import HostTime, host_time, recomputed
from train_ledger.slow.trace.intervals import (
    Intervals,
    both,
    clipped,
    either,
    length_ns,
    nothing,
    union,
    without,
)
from train_ledger.slow.trace.launching import Launching, launching
from train_ledger.slow.trace.pipeline import has_receives, pipeline_waits
from train_ledger.slow.trace.reading.names import Doing, GpuClass
from train_ledger.slow.trace.reading.trace import Trace
from train_ledger.slow.trace.steps import Window

__all__ = [
    "BUCKETS",
    "HELD_BY",
    "HOST_PARTS",
    "OTHER_PARTS",
    "Buckets",
    "TimeByCause",
    "buckets_of",
    "time_by_cause",
    "together",
]

BUCKETS = (
    "compute",
    "bubble",
    "comm_exposed",
    "recompute",
    "data_wait",
    "kernel_eff",
    "cpu_launch",
    "straggler",
    "other",
)
HELD_BY = {
    "bubble": "comm_exposed",
    "recompute": "compute",
    "kernel_eff": "compute",
    "straggler": "comm_exposed",
}
"""Where the time of a bucket is that is not known."""

HOST_PARTS = {
    "checkpoint": Doing.CHECKPOINT_SAVE,
    "gc": Doing.GARBAGE_COLLECTION,
    "allocator": Doing.ALLOCATOR,
    "sync": Doing.SYNC,
}
"""What the host does in `cpu_launch`, the first that fits; "dispatch" is what remains."""

_HOST_TO_DEVICE = ("HtoD", "HostToDevice", "M2D")
"""In the names of copies from the host, as Kineto calls them on CUDA, older ROCm and XPU."""


OTHER_PARTS = ("copies", "dependency", "kernel_gaps", "graph", "unexplained")
"""What "other" is made of: copies that nothing hides, waiting for another stream, moments between kernels,
idle time before a node of a graph that had been launched, and idle time of which the trace does not tell
the cause."""


@dataclass(frozen=True, slots=True)
class TimeByCause:
    """All time of one trace by what it was spent on: sets without overlaps. None: the trace cannot tell."""

    sets: Mapping[str, Intervals]
    unknown: frozenset[str]
    host_parts: Mapping[str, Intervals]
    other_parts: Mapping[str, Intervals]


@dataclass(frozen=True, slots=True)
class Buckets:
    """Nanoseconds of one window by cause; those that are known sum to `window_ns`.

    `host_parts_ns` says what the host did in `cpu_launch`, `other_parts_ns` what "other" is made of.
    """

    step: int | None
    window_ns: int
    buckets_ns: Mapping[str, int | None]
    host_parts_ns: Mapping[str, int] = field(default_factory=dict)
    other_parts_ns: Mapping[str, int] = field(default_factory=dict)


def time_by_cause(
    trace: Trace, straggling: Intervals | None = None, launched: Launching | None = None
) -> TimeByCause:
    """Sort all time of a trace; `straggling` is when collectives waited for another rank, None: not known.

    `launched` is looked for where it is not at hand.
    """
    launched = launched or launching(trace)
    host, again = host_time(trace, launched), recomputed(trace, launched)
    compute, repeated = _computed(trace, again)
    communication = without(without(_of(trace, trace.gpu.kind == GpuClass.COMMUNICATION), compute), repeated)
    waits = pipeline_waits(trace)
    bubble = both(communication, waits) if waits is not None else nothing()
    straggler = without(both(communication, straggling), bubble) if straggling is not None else nothing()
    copies = _copies(trace, compute, repeated, communication)
    idle = _idle(trace)
    of_data = _copies_of_data(trace, launched, host, copies)
    data = both(idle, host.of(Doing.DATA))
    fed_late = without(host_bound(trace, launched, idle), data)
    on_host = _received_on_host(trace, host, fed_late)
    fed_late = without(fed_late, on_host)
    sets = {
        "compute": compute,
        "recompute": repeated,
        "bubble": either(bubble, on_host),
        "straggler": straggler,
        "comm_exposed": without(without(communication, bubble), straggler),
        "data_wait": either(data, of_data),
        "cpu_launch": fed_late,
    }
    left = without(without(without(idle, data), fed_late), on_host)
    depends = dependency_bound(trace, launched, idle, left)
    rest = without(left, depends)
    gaps = short_gaps(rest)
    rest = without(rest, gaps)
    graph = graph_bound(trace, rest)
    others = {
        "copies": without(copies, of_data),
        "dependency": depends,
        "kernel_gaps": gaps,
        "graph": graph,
        "unexplained": without(rest, graph),
    }
    return TimeByCause(sets, _unknown(again, waits, straggling), _host_parts(fed_late, host), others)


def _unknown(*found: object) -> frozenset[str]:
    names = ("recompute", "bubble", "straggler")
    return frozenset({"kernel_eff", *(name for name, it in zip(names, found, strict=True) if it is None)})


def _received_on_host(trace: Trace, host: HostTime, fed_late: Intervals) -> Intervals:
    """When the host waited for what another stage had to send; where the GPU receives it only asks for it."""
    return both(fed_late, host.of(Doing.RECEIVE)) if not has_receives(trace) else nothing()


def _computed(trace: Trace, again: np.ndarray | None) -> tuple[Intervals, Intervals]:
    is_compute = trace.gpu.kind == GpuClass.COMPUTE
    if again is None:
        return _of(trace, is_compute), nothing()
    compute = _of(trace, is_compute & ~again)
    return compute, without(_of(trace, is_compute & again), compute)


def _of(trace: Trace, chosen: np.ndarray) -> Intervals:
    return union(trace.gpu.start[chosen], trace.gpu.end[chosen])


def _copies(trace: Trace, *before: Intervals) -> Intervals:
    copies = _of(trace, trace.gpu.kind == GpuClass.MEMORY)
    for each in before:
        copies = without(copies, each)
    return copies


def _copies_of_data(trace: Trace, launched: Launching, host: HostTime, copies: Intervals) -> Intervals:
    """Copies to the GPU that were launched while data was fetched."""
    data = host.of(Doing.DATA)
    if not len(data):
        return nothing()
    names = [number for number, name in enumerate(trace.names) if any(it in name for it in _HOST_TO_DEVICE)]
    place = np.searchsorted(data[:, 0], launched.at, side="right") - 1
    fetched = launched.is_known & (place >= 0) & (launched.at < data[place.clip(min=0), 1])
    return both(copies, _of(trace, fetched & np.isin(trace.gpu.name, names)))


def _idle(trace: Trace) -> Intervals:
    if not len(trace.gpu):
        return nothing()
    whole = union([int(trace.gpu.start.min())], [int(trace.gpu.end.max())])
    return without(whole, union(trace.gpu.start, trace.gpu.end))


def _host_parts(fed_late: Intervals, host: HostTime) -> dict[str, Intervals]:
    parts: dict[str, Intervals] = {}
    left = fed_late
    for name, doing in HOST_PARTS.items():
        parts[name] = both(left, host.of(doing))
        left = without(left, parts[name])
    return {**parts, "dispatch": left}


def buckets_of(times: TimeByCause, window: Window) -> Buckets:
    """The time of one window by cause; what no cause has is "other"."""
    found: dict[str, int | None] = {
        name: length_ns(clipped(intervals, window.start, window.end))
        for name, intervals in times.sets.items()
    }
    found["other"] = window.length_ns - sum(value or 0 for value in found.values())
    for name in times.unknown:
        found[name] = None
    parts, others = (
        {name: length_ns(clipped(part, window.start, window.end)) for name, part in of.items()}
        for of in (times.host_parts, times.other_parts)
    )
    buckets = {name: found[name] for name in BUCKETS}
    return Buckets(window.step, window.length_ns, buckets, parts, others)


def together(steps: Sequence[Buckets]) -> Buckets:
    """The sum of several windows; a bucket that one of them does not know is not known."""
    sums: dict[str, int | None] = {}
    for name in BUCKETS:
        values = [step.buckets_ns[name] for step in steps]
        known = [value for value in values if value is not None]
        sums[name] = sum(known) if len(known) == len(values) and values else None if values else 0
    host, other = (
        {name: sum(each[name] for each in parts) for name in (parts[0] if parts else ())}
        for parts in ([it.host_parts_ns for it in steps], [it.other_parts_ns for it in steps])
    )
    return Buckets(None, sum(step.window_ns for step in steps), sums, host, other)
