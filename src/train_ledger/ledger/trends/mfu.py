"""How well were the GPUs used in every part of the last half hour?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from train_ledger.config import Alerts
from train_ledger.ledger.trends.slots import pieces, slot_s

__all__ = ["MfuTrend", "is_mfu"]

_PARTS = 6
_SLOTS_OF_A_PART = 20
_SLOTS = _PARTS * _SLOTS_OF_A_PART
_FEWEST_PARTS = 3
"""A checkpoint or an evaluation may take some of the window; from less than this nothing is said."""

_OLDEST_SLOTS = 4
_DIGITS = 4
_LARGEST = 1000.0
"""Percent: more is no use of a GPU, whatever its peak."""


class MfuTrend:
    """One rank's mfu in one attempt, on its own clock; steps that saved, paused or warmed up are left out."""

    __slots__ = ("_slots", "newest_t", "since_t", "slot_s")

    def __init__(self, alerts: Alerts) -> None:
        self.slot_s = slot_s(alerts.mfu_window_s, _SLOTS)
        self.warm_up()

    def warm_up(self) -> None:
        """What follows is the beginning of a steady time: nothing before it counts."""
        self._slots: dict[int, tuple[float, int]] = {}
        self.since_t: float | None = None
        self.newest_t = -math.inf

    def add(self, times: Sequence[float], mfus: Sequence[float | None]) -> None:
        """Steps in a row that ended at these times; what is no mfu is left out."""
        if not _are_told(mfus):
            told = [(t, mfu) for t, mfu in zip(times, mfus, strict=True) if is_mfu(mfu)]
            if not told:
                return
            times, mfus = zip(*told, strict=True)
        self._sum(times, cast(Sequence[float], mfus))

    def _sum(self, times: Sequence[float], mfus: Sequence[float]) -> None:
        if self.since_t is None:
            self.since_t = times[0]
        self.newest_t = times[-1]
        for slot, start, end in pieces(times, self.slot_s, newest=_SLOTS + 1):
            total, count = self._slots.get(slot, (0.0, 0))
            self._slots[slot] = sum(mfus[start:end], total), count + end - start
        if len(self._slots) > 2 * _SLOTS:
            gone = self._newest - _SLOTS - 1
            self._slots = {slot: sums for slot, sums in self._slots.items() if slot > gone}

    @property
    def _newest(self) -> int:
        return int(self.newest_t // self.slot_s)

    def best(self, alerts: Alerts) -> float | None:
        """The mean mfu (percent) of the best part of the window; None before it has lasted for as long.

        The first minute of the window is looked at by itself, too, so that a fall is not called half an hour
        old before it is.
        """
        if self.since_t is None or self.newest_t - self.since_t < alerts.mfu_window_s:
            return None
        newest, size = self._newest, _SLOTS_OF_A_PART
        parts = [self._mean(newest - (place + 1) * size + 1, size) for place in range(_PARTS)]
        told = [part for part in parts if part is not None]
        if len(told) < _FEWEST_PARTS:
            return None
        first = self._mean(newest - _SLOTS, _OLDEST_SLOTS)
        # Sums of the same steps may differ in their last bits by how many were read at once.
        return round(max([*told, *([] if first is None else [first])]), _DIGITS)

    def _mean(self, first: int, slots: int) -> float | None:
        sums = [self._slots[slot] for slot in range(first, first + slots) if slot in self._slots]
        count = sum(it for _, it in sums)
        return sum(total for total, _ in sums) / count if count else None


def _are_told(mfus: Sequence[float | None]) -> bool:
    try:
        return min(mfus) >= 0 and max(mfus) < _LARGEST  # type: ignore[type-var,operator]
    except TypeError:  # one of them is None
        return False


def is_mfu(mfu: float | None) -> bool:
    """Whether it is a figure at all; also where something else than percent was told.

    >>> is_mfu(41.5), is_mfu(float("nan")), is_mfu(None), is_mfu(-1.0)
    (True, False, False, False)
    """
    return mfu is not None and 0 <= mfu < _LARGEST
