"""What time is it on the clock of the run?

Every time in an answer is read on the clock of rank 0's host. The keeper may run elsewhere, with another
clock: how far it is off shows in the lines that arrive. A line is at most a moment old when it is read, so
the largest lead of a line over our own clock is the offset. It takes some looks to believe it: the lines of
a run that has long been standing still are old, and no clock is wrong.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

__all__ = ["RunClock"]

_WORTH_CORRECTING_S = 3.0
_LOOKS = 5


class RunClock:
    """Our own clock, moved onto rank 0's where the two differ by more than lines can be late.

    >>> clock = RunClock(lambda: 1000.0)
    >>> for lag_s in (0.9, 0.2, 0.5, 0.7, 0.4):
    ...     clock.heard([1200.0 - lag_s])
    >>> clock.now()
    1199.8
    """

    def __init__(self, own_clock: Callable[[], float] = time.time) -> None:
        self._own_clock = own_clock
        self._leads: deque[float] = deque(maxlen=50)

    def heard(self, times: Iterable[float]) -> None:
        """Lines of rank 0's host were just read for the first time; `times` are their own."""
        newest = max(times, default=None)
        if newest is not None:
            self._leads.append(newest - self._own_clock())

    def now(self) -> float:
        """Unix seconds on the run's clock."""
        offset = max(self._leads) if len(self._leads) >= _LOOKS else 0.0
        return self._own_clock() + (offset if abs(offset) > _WORTH_CORRECTING_S else 0.0)
