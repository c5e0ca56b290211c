"""Why had the GPU nothing to do?

Before an activity that the host launched late, until that launch and the time that a launch takes, the host
did not feed the GPU; what remains, the GPU or another rank kept it waiting. `lat0` is the shortest time that
launches of this trace take (the first percentile).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.intervals import Intervals, both, nothing, union
from train_ledger.slow.trace.launching import Launching
from train_ledger.slow.trace.reading.trace import Trace

__all__ = ["dependency_bound", "graph_bound", "host_bound", "short_gaps", "shortest_launch_ns"]

_LONGEST_LATENCY_NS = 50_000
_SHORT_NS = 10_000


def shortest_launch_ns(trace: Trace, launched: Launching) -> int:
    """From the call to the first moment on an idle GPU, as this trace shows it; 0 where it shows none."""
    delays = (trace.gpu.start - launched.at)[launched.is_known]
    delays = delays[delays > 0]
    if not len(delays):
        return 0
    return int(min(np.percentile(delays, 1, method="lower"), _LONGEST_LATENCY_NS))


def host_bound(trace: Trace, launched: Launching, idle: Intervals) -> Intervals:
    """The part of the idle time that passed before what ends it was launched, and that launch took."""
    if not len(idle) or not launched.is_known.any():
        return nothing()
    fed_at = launched.at + shortest_launch_ns(trace, launched)
    ends_it, has_one = _ending(trace, idle)
    has_one &= launched.is_known[ends_it]
    until = np.minimum(fed_at[ends_it], idle[:, 1])
    return both(idle, union(idle[:, 0][has_one], until[has_one]))


def dependency_bound(trace: Trace, launched: Launching, idle: Intervals, left: Intervals) -> Intervals:
    """Of what is `left` of the idle time: when what ends it waited for what ran on another stream.

    Its stream had been told to wait for another one; or it had been launched, and its stream been free,
    before the GPU became idle.
    """
    if not len(left):
        return nothing()
    ends_it, has_one = _ending(trace, left)
    stream, free_since = trace.gpu.place[ends_it], _free_since(trace, ends_it)
    idle_since = idle[np.searchsorted(idle[:, 0], left[:, 0], side="right") - 1, 0]
    told = _last_begun(trace.stream_waits.start, trace.stream_waits.place, left[:, 1], stream)
    was_told = (told != _NEVER) & (told >= free_since) | _told_by_host(trace, launched, ends_it)
    queued = launched.is_known[ends_it] & (launched.at[ends_it] <= idle_since)
    waits = has_one & (was_told | (queued & (free_since < idle_since) & (free_since != _NEVER)))
    return union(left[:, 0][waits], left[:, 1][waits])


def graph_bound(trace: Trace, left: Intervals) -> Intervals:
    """Of what is `left` of the idle time: what ends with a node of a graph, which had been launched by then.

    Nodes of the graph before it were not recorded, or its branches waited for each other: the profiler does
    not tell which. A launch that made several activities is one of a graph.
    """
    if not len(left):
        return nothing()
    ends_it, has_one = _ending(trace, left)
    _, of_launch, activities = np.unique(trace.gpu.correlation, return_inverse=True, return_counts=True)
    is_node = (activities[of_launch] > 1) & (trace.gpu.correlation > 0)
    waits = has_one & is_node[ends_it]
    return union(left[:, 0][waits], left[:, 1][waits])


def short_gaps(idle: Intervals) -> Intervals:
    """Those that any two kernels have between them."""
    return idle[idle[:, 1] - idle[:, 0] <= _SHORT_NS]


_NEVER = np.iinfo(np.int64).min


def _ending(trace: Trace, idle: Intervals) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The activity with which each idle time ends, and whether there is one."""
    place = np.searchsorted(trace.gpu.start, idle[:, 1], side="left")
    has_one = place < len(trace.gpu)
    place = place.clip(max=len(trace.gpu) - 1)
    return place, has_one & (trace.gpu.start[place] == idle[:, 1])


def _told_by_host(trace: Trace, launched: Launching, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether its thread had a stream wait for an event since it launched what ran before on its stream."""
    named = [number for number, name in enumerate(trace.names) if name.endswith(_WAIT_CALLS)]
    calls = trace.launches.only(np.isin(trace.launches.name, named))
    at = launched.at[places]
    last = _last_begun(calls.start, calls.place, at, launched.thread[places])
    before_it = _before(trace, np.where(launched.is_known, launched.at, _NEVER))[places]
    told = launched.is_known[places] & (last != _NEVER) & (last >= before_it) & (before_it != _NEVER)
    return np.asarray(told, dtype=bool)


_WAIT_CALLS = ("StreamWaitEvent", "StreamWaitEvent_ptsz", "StreamWaitValue32", "StreamWaitValue64")


def _free_since(trace: Trace, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """When what ran before each of these activities on its own stream had ended."""
    return _before(trace, trace.gpu.end)[places]


def _before(trace: Trace, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The value of what ran before each activity on its own stream; `_NEVER` for the first."""
    order = np.lexsort((trace.gpu.start, trace.gpu.place))
    found = np.full(len(trace.gpu), _NEVER)
    same = trace.gpu.place[order[1:]] == trace.gpu.place[order[:-1]]
    found[order[1:][same]] = values[order[:-1][same]]
    return found


def _last_begun(
    starts: npt.NDArray[np.int64],
    streams: npt.NDArray[np.int64],
    until: npt.NDArray[np.int64],
    of_streams: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """When the last of these on each stream began before a moment; `_NEVER` where none did."""
    found = np.full(len(until), _NEVER)
    for stream in set(of_streams.tolist()):
        mine = np.sort(starts[streams == stream])
        here = of_streams == stream
        place = np.searchsorted(mine, until[here], side="right") - 1
        if len(mine):
            found[here] = np.where(place >= 0, mine[place.clip(min=0)], _NEVER)
    return found
