"""Did one rank's memory fall to pieces lately?

The allocator tried again after it had found no room, and more memory than before lies in blocks that it can
neither give back nor use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from train_ledger.config import Alerts
from train_ledger.facts import PlainStep
from train_ledger.ledger.trends.figures import Fragmented
from train_ledger.ledger.trends.slots import pieces, slot_s

__all__ = ["Fragmentation"]

_SLOTS = 6

_Seen = tuple[float, float]
"""(retries, inactive bytes)"""


class Fragmentation:
    """What one rank told last in each sixth of the window, and before it, in one attempt.

    Lines that do not tell both figures say nothing here.
    """

    __slots__ = ("_before", "_slot_s", "_slots")

    def __init__(self, alerts: Alerts) -> None:
        self._slot_s = slot_s(alerts.fragmentation_window_s, _SLOTS)
        self.begin_attempt()

    def begin_attempt(self) -> None:
        self._before: _Seen | None = None
        self._slots: dict[int, _Seen] = {}

    def add(self, t: float, values: Mapping[str, float]) -> None:
        """What the line of a step told."""
        if "mem_inactive_split" in values and "num_alloc_retries" in values:
            seen = values["num_alloc_retries"], values["mem_inactive_split"]
            if all(map(math.isfinite, seen)):
                self._see(int(t // self._slot_s), seen, seen)

    def add_all(self, times: Sequence[float], steps: Sequence[PlainStep]) -> None:
        """The same of many steps in a row, all values of which are finite."""
        if not [True for step in steps if step.mem_inactive_split is not None]:
            return
        for slot, start, end in pieces(times, self._slot_s):
            here = steps[start:end]
            last = next(filter(None, map(_told, reversed(here))), None)
            if last is not None:
                first = last if self._before else next(filter(None, map(_told, here)))
                self._see(slot, first, last)

    def _see(self, slot: int, first: _Seen, last: _Seen) -> None:
        if self._before is None:
            self._before = first
        known = slot in self._slots
        self._slots[slot] = last
        if not known:
            for old in [it for it in self._slots if it <= slot - _SLOTS]:
                self._before = self._slots.pop(old)

    def grown(self) -> Fragmented | None:
        """By how much both grew within the window; None where one of them did not, or nothing is known."""
        if self._before is None:
            return None
        now = self._slots[max(self._slots)]
        retries, inactive_bytes = now[0] - self._before[0], now[1] - self._before[1]
        return Fragmented(retries, inactive_bytes) if retries > 0 and inactive_bytes > 0 else None


def _told(step: PlainStep) -> _Seen | None:
    retries, inactive_bytes = step.num_alloc_retries, step.mem_inactive_split
    return None if retries is None or inactive_bytes is None else (retries, inactive_bytes)
