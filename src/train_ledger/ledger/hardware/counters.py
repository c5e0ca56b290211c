"""By how much did a counter grow within a window?

Kept are the times at which it changed, a few of them; a counter that fell (the driver was loaded anew) begins
again at what it fell to, and that is no growth.
"""

from __future__ import annotations

from collections import deque
from statistics import median

__all__ = ["Counter", "Usual"]

_POINTS = 150


class Counter:
    """One counter; changes within `slot_s` of each other count as of the same time."""

    __slots__ = ("_points", "_slot_s", "value")

    def __init__(self, slot_s: float) -> None:
        self._slot_s = slot_s
        self._points: deque[tuple[float, float]] = deque(maxlen=_POINTS)
        self.value: float | None = None

    def add(self, t: float, value: float) -> float:
        """A reading; returns by how much it grew since the one before, as after a reset from 0."""
        before, self.value = self.value, value
        if before is None or value < before:
            self._points.clear()
            self._points.append((t, value))
            return 0.0 if before is None else value
        if value > before:
            if len(self._points) > 1 and t - self._points[-1][0] < self._slot_s:
                self._points[-1] = (self._points[-1][0], value)
            else:
                self._points.append((t, value))
        return value - before

    def grown(self, t: float, window_s: float) -> float:
        """By how much it grew in the `window_s` up to `t`, since its last reset and its first reading."""
        if self.value is None:
            return 0.0
        start = self._points[0][1]
        for changed_t, value in self._points:
            if changed_t > t - window_s:
                break
            start = value
        return self.value - start


class Usual:
    """What a gauge mostly was over the last day: the last value of each slot of time counts once."""

    __slots__ = ("_fewest", "_median", "_slot_s", "_slots")

    def __init__(self, slot_s: float, fewest: int) -> None:
        self._slot_s = slot_s
        self._fewest = fewest
        self._slots: deque[tuple[int, float]] = deque(maxlen=round(86_400.0 / slot_s))
        self._median: float | None = None

    def add(self, t: float, value: float) -> None:
        slot = int(t // self._slot_s)
        if self._slots and self._slots[-1][0] >= slot:
            if self._slots[-1][1] == value:
                return
            self._slots[-1] = (self._slots[-1][0], value)
        else:
            self._slots.append((slot, value))
        self._median = None

    @property
    def highest(self) -> float | None:
        return max((value for _, value in self._slots), default=None)

    @property
    def value(self) -> float | None:
        """The median; None where too few slots of time are known."""
        if self._median is None and len(self._slots) >= self._fewest:
            self._median = median(value for _, value in self._slots)
        return self._median
