"""How long did steps take lately, and how long did they usually take?

One rank's steady steps, counted by slot of time in classes of 1 %. Bounded: what is older than the usual hour
is given up as soon as that hour, or what must be added to it, holds enough steps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat

from train_ledger.config import Alerts
from train_ledger.ledger.trends.slots import pieces, slot_s

__all__ = ["FEWEST_RECENT", "PaceTrend", "Sample", "quantile_s"]

_RECENT_SLOTS = 20
_CLASSES = 100.0
"""Classes of the logarithm, so each is 1 % wide."""

FEWEST_RECENT = 3
"""Of fewer steps nothing is said; where steps are long the recent ones reach further back for them."""

_MANY = 16
"""For fewer lines a Counter takes longer than a look at each."""

_MOST_STRIDE = 100
"""A line stands for no more steps than this: where lines were lost, it does not tell of those."""

Sample = Counter[int]
"""How many lines told a duration of each class."""


class PaceTrend:
    """The steady steps of one rank in one attempt, on its own clock.

    `since_t` is when the first one after the warm-up was completed, `newest_t` when the last one was.
    """

    __slots__ = ("_most", "_slots", "_steps", "newest_t", "since_t", "slot_s")

    def __init__(self, alerts: Alerts) -> None:
        self.slot_s = slot_s(alerts.step_recent_s, _RECENT_SLOTS)
        self._most = 2 * self._of(alerts.step_usual_offset_s + alerts.step_usual_window_s)
        self._slots: dict[int, dict[int, int]] = {}
        self._steps: dict[int, int] = {}
        self.since_t: float | None = None
        self.newest_t = -math.inf

    def warm_up(self) -> None:
        """A step came that is none to go by, and what follows is the beginning of a steady time."""
        self.since_t = None

    def add(
        self,
        times: Sequence[float],
        strides: Sequence[int],
        durations_s: Sequence[float | None],
        alerts: Alerts,
    ) -> None:
        """Steps in a row that ended at these times, each `stride` after the one before; None is left out."""
        self.newest_t = times[-1]
        if None in durations_s:
            kept = [it for it in zip(times, strides, durations_s, strict=True) if it[2] is not None]
            if not kept:
                return
            times, strides, durations_s = zip(*kept, strict=True)
        if self.since_t is None:
            self.since_t = times[0]
        classes = [math.floor(_CLASSES * log) for log in map(math.log, durations_s)]
        for slot, start, end in pieces(times, self.slot_s):
            self._count(slot, classes[start:end], strides[start:end], alerts)

    def _count(self, slot: int, classes: Sequence[int], strides: Sequence[int], alerts: Alerts) -> None:
        known = self._slots.get(slot)
        if known is None:
            known = self._slots[slot] = {}
            self._steps[slot] = 0
            if len(self._slots) > self._most:
                self._forget(slot, alerts)
        counted = Counter(classes).items() if len(classes) > _MANY else zip(classes, repeat(1), strict=False)
        for number, lines in counted:
            known[number] = known.get(number, 0) + lines
        few = max(strides) <= _MOST_STRIDE
        self._steps[slot] += sum(strides if few else (min(stride, _MOST_STRIDE) for stride in strides))

    def _forget(self, newest: int, alerts: Alerts) -> None:
        """Give up what no later look can need."""
        span = self._of(alerts.step_usual_offset_s) + self._of(alerts.step_usual_window_s)
        end = newest - self._of(alerts.step_usual_offset_s)
        enough = 0
        for slot in sorted(self._slots, reverse=True):
            if slot < newest - span and enough >= alerts.step_usual_least_steps:
                del self._slots[slot], self._steps[slot]
            elif slot <= end:
                enough += self._steps[slot]

    def _of(self, seconds: float) -> int:
        """How many slots so many seconds are."""
        return max(1, round(seconds / self.slot_s))

    @property
    def newest(self) -> int:
        """The slot of the newest step."""
        return int(self.newest_t // self.slot_s)

    def is_warm(self, alerts: Alerts) -> bool:
        """Whether the steady time has lasted for as long as the recent steps reach back."""
        return self.since_t is not None and self.newest_t - self.since_t >= alerts.step_recent_s

    def recent(self, alerts: Alerts) -> Sample:
        """The steps of the last minutes; where they are too few, of up to the end of the usual hour."""
        found: Sample = Counter()
        first = self.newest - self._of(alerts.step_recent_s)
        last = self.newest - self._of(alerts.step_usual_offset_s)
        for slot in sorted(self._slots, reverse=True):
            if slot <= last or (slot <= first and found.total() >= FEWEST_RECENT):
                break
            found.update(self._slots[slot])
        return found

    def usual_edges(self, alerts: Alerts) -> tuple[int, int]:
        """The first and the last slot of the usual hour."""
        last = self.newest - self._of(alerts.step_usual_offset_s)
        return last - self._of(alerts.step_usual_window_s), last

    def up_to(self, last: int) -> Iterable[tuple[int, int, dict[int, int]]]:
        """(slot, steps, lines of each class) of each slot up to `last`."""
        return ((slot, self._steps[slot], lines) for slot, lines in self._slots.items() if slot <= last)


def quantile_s(sample: Sample, share: float) -> float:
    """The duration that this share of a sample's lines does not exceed, to 1 %.

    >>> round(quantile_s(Counter({math.floor(100 * math.log(12.0)): 3}), 0.5), 1)
    12.0
    """
    wanted, seen = share * sample.total(), 0
    for number in sorted(sample):
        seen += sample[number]
        if seen >= wanted:
            return math.exp((number + 0.5) / _CLASSES)
    return math.nan
