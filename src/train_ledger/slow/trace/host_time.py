"""What was the host doing while the GPU had nothing to do?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.intervals import Intervals, both, either, nothing, union, without
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


def host_time(trace: Trace, launched: Launching) -> HostTime:
    """By what was done, over threads that launched work: a loader's own threads keep nobody waiting."""
    launch = launched.thread[launched.is_known] if launched.is_known.any() else trace.launches.place
    host = trace.host.only(np.isin(trace.host.place, list(set(launch.tolist()))))
    kinds = [kind for kind in Doing if kind is not Doing.NOTHING]
    return HostTime({kind: _when(host, host.kind == kind) for kind in kinds})


def _when(spans: Spans, chosen: Mask) -> Intervals:
    picked = spans.only(chosen)
    return union(picked.start, picked.end)


def recomputed(trace: Trace, launched: Launching) -> Mask | None:
    """Which activities do again what the forward pass did; None where the trace cannot tell.

    They are launched within a frame of torch.utils.checkpoint on the thread of the backward pass, and not
    within a backward pass inside of that frame; or, where Python's calls were not recorded, within an
    operator inside of a backward pass of which gradients are asked for in turn. That there are none can be
    told where either was recorded and no compiled backward pass runs, which may compute again what nobody
    sees.
    """
    found = np.zeros(len(trace.gpu), dtype=bool)
    for thread, time in _repeating(trace):
        found |= launched.is_known & (launched.thread == thread) & _begins_within(launched.at, time)
    if found.any():
        return found
    can_tell = trace.has_python_frames or trace.has_sequence_numbers
    return found if can_tell and not any(_COMPILED in name for name in trace.names) else None


_COMPILED = "CompiledFunctionBackward"


def _repeating(trace: Trace) -> Iterator[tuple[int, Intervals]]:
    """Each thread of a backward pass with the time in which it does again what the forward pass did."""
    host = trace.host
    backward = host.only(host.kind == Doing.BACKWARD)
    frames = host.only(host.kind == Doing.RECOMPUTE)
    forward = host.only(host.kind == Doing.FORWARD)
    for thread in sorted({*frames.place.tolist(), *backward.place.tolist()}):
        again = _when(frames, frames.place == thread)
        passes = backward.only(backward.place == thread)
        inner = passes.only(_begins_within(passes.start, again))
        in_frames = without(again, both(again, union(inner.start, inner.end)))
        mine = forward.only(forward.place == thread)
        nested = mine.only(_begins_within(mine.start, union(passes.start, passes.end)))
        if _begin_in_most(nested, passes):
            nested = nested.only(np.zeros(len(nested), dtype=bool))  # gradients of gradients are asked for
        yield thread, either(in_frames, union(nested.start, nested.end))


def _begin_in_most(spans: Spans, passes: Spans) -> bool:
    ahead = np.searchsorted(spans.start, passes.end) > np.searchsorted(spans.start, passes.start)
    return len(passes) > 0 and float(ahead.mean()) > _MOST


_MOST = 0.5


def _begins_within(moments: npt.NDArray[np.int64], intervals: Intervals) -> Mask:
    if not len(intervals):
        return np.zeros(len(moments), dtype=bool)
    place = np.searchsorted(intervals[:, 0], moments, side="right") - 1
    within: Mask = (place >= 0) & (moments < intervals[place.clip(min=0), 1])
    return within
