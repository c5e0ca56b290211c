"""What was the host doing while the GPU had nothing to do?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.intervals import Intervals, both, nothing, union, without
from train_ledger.slow.trace.launching import Launching
from train_ledger.slow.trace.reading.names import Doing
from train_ledger.slow.trace.reading.trace import Spans, Trace

__all__ = ["HostTime", "host_time", "recomputed"]

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class HostTime:
    """When threads that launch work were busy with what keeps them from launching it."""

    by_doing: dict[Doing, Intervals]

    def of(self, doing: Doing) -> Intervals:
        return self.by_doing.get(doing, nothing())


def host_time(trace: Trace) -> HostTime:
    """By what was done, over threads that launched anything: a loader's own threads keep nobody waiting."""
    host = trace.host.only(np.isin(trace.host.place, np.unique(trace.launches.place)))
    kinds = [kind for kind in Doing if kind is not Doing.NOTHING]
    return HostTime({kind: _when(host, host.kind == kind) for kind in kinds})


def _when(spans: Spans, chosen: Mask) -> Intervals:
    picked = spans.only(chosen)
    return union(picked.start, picked.end)


def recomputed(trace: Trace, launched: Launching) -> Mask | None:
    """Which activities do again what the forward pass did; None where the trace cannot tell.

    They are launched within a frame of torch.utils.checkpoint on the thread of the backward pass, and not
    within a backward pass inside of that frame. Without such a frame the trace can tell only where Python's
    calls were recorded: a checkpoint that is not re-entrant shows in nothing else.
    """
    host = trace.host
    frames = host.only(host.kind == Doing.RECOMPUTE)
    if not len(frames):
        return np.zeros(len(trace.gpu), dtype=bool) if trace.has_python_frames else None
    found = np.zeros(len(trace.gpu), dtype=bool)
    for thread in np.unique(frames.place):
        again = _when(frames, frames.place == thread)
        backward = host.only((host.place == thread) & (host.kind == Doing.BACKWARD))
        inner = backward.only(_begins_within(backward.start, again))
        time = without(again, both(again, union(inner.start, inner.end)))
        found |= launched.is_known & (launched.thread == thread) & _begins_within(launched.at, time)
    return found


def _begins_within(moments: npt.NDArray[np.int64], intervals: Intervals) -> Mask:
    if not len(intervals):
        return np.zeros(len(moments), dtype=bool)
    place = np.searchsorted(intervals[:, 0], moments, side="right") - 1
    within: Mask = (place >= 0) & (moments < intervals[place.clip(min=0), 1])
    return within
