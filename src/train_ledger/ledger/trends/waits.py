"""How much of its steps did one rank wait for data lately?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from train_ledger.config import Alerts
from train_ledger.ledger.pace import LONGEST_STEP_S
from train_ledger.ledger.trends.slots import pieces, slot_s

__all__ = ["DataWaits"]

_SLOTS = 5
_DIGITS = 4

Numbers = Sequence[float | None]


class DataWaits:
    """What a rank waited and how long its steps took, summed by slots of a fifth of the window.

    Steps that do not tell both say nothing here, nor do those of the warm-up and behind a pause.
    """

    __slots__ = ("_newest_t", "_since_t", "_slot_s", "_slots")

    def __init__(self, alerts: Alerts) -> None:
        self._slot_s = slot_s(alerts.data_wait_window_s, _SLOTS)
        self.begin_attempt()

    def begin_attempt(self) -> None:
        self._slots: dict[int, tuple[float, float]] = {}
        self._since_t: float | None = None
        self._newest_t = -math.inf

    def add(self, times: Sequence[float], waits_s: Numbers, steps_s: Numbers) -> None:
        """Steps in a row that ended at these times, and what they told."""
        sums_s = _sums(waits_s, steps_s)
        if sums_s is not None:
            self._sum(times, cast(Sequence[float], waits_s), cast(Sequence[float], steps_s), sums_s)
            return
        for t, wait_s, step_s in zip(times, waits_s, steps_s, strict=True):
            sums_s = _sums((wait_s,), (step_s,))
            if sums_s is not None:
                self._sum((t,), sums_s[:1], sums_s[1:], sums_s)

    def _sum(
        self,
        times: Sequence[float],
        waits_s: Sequence[float],
        steps_s: Sequence[float],
        sums_s: tuple[float, float],
    ) -> None:
        if self._since_t is None:
            self._since_t = times[0]
        self._newest_t = times[-1]
        for slot, start, end in pieces(times, self._slot_s, newest=_SLOTS):
            here_s = sums_s
            if end - start < len(times):
                here_s = sum(waits_s[start:end]), sum(steps_s[start:end])
            waited_s, took_s = self._slots.get(slot, (0.0, 0.0))
            self._slots[slot] = waited_s + here_s[0], took_s + here_s[1]
        if len(self._slots) > 2 * _SLOTS:
            gone = self._newest - _SLOTS
            self._slots = {slot: sums for slot, sums in self._slots.items() if slot > gone}

    @property
    def _newest(self) -> int:
        return int(self._newest_t // self._slot_s)

    def fraction(self) -> float | None:
        """What was waited, as a share of the steps; None until the rank's steady steps fill the window."""
        if self._since_t is None or self._newest_t - self._since_t < (_SLOTS - 1) * self._slot_s:
            return None
        newest = self._newest
        sums = [self._slots.get(slot, (0.0, 0.0)) for slot in range(newest - _SLOTS + 1, newest + 1)]
        took_s = sum(took for _, took in sums)
        # Sums of the same steps may differ in their last bits by how many were read at once.
        return round(sum(waited for waited, _ in sums) / took_s, _DIGITS) if took_s > 0 else None


def _sums(waits_s: Numbers, steps_s: Numbers) -> tuple[float, float] | None:
    """The sums, where each step told both, and both can be; for hundreds of thousands of lines a second."""
    try:
        if min(waits_s) >= 0 and min(steps_s) > 0:  # type: ignore[type-var,operator]
            sums_s = sum(waits_s), sum(steps_s)  # type: ignore[arg-type]
            return sums_s if max(sums_s) < LONGEST_STEP_S else None
    except TypeError:  # one of them is None
        pass
    return None
