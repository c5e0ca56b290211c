"""What time is it on the clock of the run?

Every time in an answer is read on the clock of rank 0's host, carried over its jumps. The keeper may run
elsewhere, with another clock: how far that is off shows in the lines that arrive. A line is at most a moment
old when it is read, so the largest lead of a line over our own clock is the offset. It takes some looks to
believe it: the lines of a run that has long been standing still are old, and no clock is wrong.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

__all__ = ["RunClock", "steady_wall_clock"]

_WORTH_CORRECTING_S = 3.0
_LOOKS = 5


def steady_wall_clock() -> Callable[[], float]:
    """Unix seconds that never jump: the wall clock of now, carried on by the monotonic one."""
    offset_s = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset_s


class RunClock:
    """Our own clock, moved onto the run's where the two differ by more than lines can be late.

    >>> clock = RunClock(lambda: 1000.0)
    >>> for lag_s in (0.9, 0.2, 0.5, 0.7, 0.4):
    ...     clock.heard(1200.0 - lag_s)
    >>> clock.now()
    1199.8
    """

    def __init__(self, own_clock: Callable[[], float] | None = None) -> None:
        self._own_clock = own_clock or steady_wall_clock()
        self._leads: deque[float] = deque(maxlen=50)

    def heard(self, newest_t: float) -> None:
        """Fresh lines of rank 0's host were just read; the newest is of `newest_t` on the run's clock."""
        self._leads.append(newest_t - self._own_clock())

    def now(self, carried_s: float = 0.0) -> float:
        """Unix seconds on the run's clock.

        `carried_s` is by how much the run's clock was moved over jumps before we looked; it holds until fresh
        lines have shown the whole offset.
        """
        offset_s = max(self._leads) if len(self._leads) >= _LOOKS else carried_s
        if abs(offset_s - carried_s) < _WORTH_CORRECTING_S:
            offset_s = carried_s
        return self._own_clock() + offset_s
