"""Why had the GPU nothing to do?

Before an activity that the host launched late, until that launch and the time that a launch takes, the host
did not feed the GPU; what remains, the GPU or another rank kept it waiting. `lat0` is the shortest time that
launches of this trace take (the first percentile).
"""

from __future__ import annotations

import numpy as np

from train_ledger.slow.trace.intervals import Intervals, both, nothing, union
from train_ledger.slow.trace.launching import Launching
from train_ledger.slow.trace.reading.trace import Trace

__all__ = ["host_bound", "shortest_launch_ns"]

_LONGEST_LATENCY_NS = 50_000


def shortest_launch_ns(trace: Trace, launched: Launching) -> int:
    """From the call to the first moment on an idle GPU, as this trace shows it; 0 where it shows none."""
    delays = (trace.gpu.start - launched.at)[launched.is_known]
    delays = delays[delays > 0]
    if not len(delays):
        return 0
    return int(min(np.percentile(delays, 1, method="lower"), _LONGEST_LATENCY_NS))


def host_bound(trace: Trace, launched: Launching, idle: Intervals) -> Intervals:
    """The part of the idle time that passed before the next activity was launched, and that launch took."""
    if not len(idle) or not launched.is_known.any():
        return nothing()
    starts = trace.gpu.start[launched.is_known]
    fed_at = launched.at[launched.is_known] + shortest_launch_ns(trace, launched)
    place = np.searchsorted(starts, idle[:, 1], side="left")
    has_next = place < len(starts)
    until = np.minimum(fed_at[place.clip(max=len(starts) - 1)], idle[:, 1])
    return both(idle, union(idle[:, 0][has_next], until[has_next]))
