"""By how much is the clock that a log's lines were stamped with in another time zone than ours?

Trainers stamp their lines with the local time and no zone. The file was written when its last line was, so
that what stands between that line's time and the file's is the zone, where it is half hours as zones are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from train_ledger.facts import Fact

__all__ = ["LogZone"]

_GRID_S = 1800.0
_FURTHEST_S = 26 * 3600.0
_LATE_S = 60.0
"""A line may be written so long after its time."""
_EARLY_S = 5.0
"""The clocks of two machines may differ by so much."""


class LogZone:
    """The zone of one log, found where the first of its facts that tell a time are seen.

    `ahead_s` is by how much their times are ahead of unix time; 0 where no zone explains the difference.
    """

    __slots__ = ("_is_known", "ahead_s")

    def __init__(self) -> None:
        self._is_known = False
        self.ahead_s = 0.0

    def corrected(self, facts: list[Fact], written_t: float) -> list[Fact]:
        """The facts of a file that was written at `written_t` (unix seconds), their times as unix seconds."""
        if not self._is_known:
            newest = max(_times(facts), default=None)
            if newest is None:
                return facts
            self._is_known = True
            self.ahead_s = _zone_s(newest - written_t)
        if not self.ahead_s:
            return facts
        return [replace(it, t=it.t - self.ahead_s) if it.t is not None else it for it in facts]


def _times(facts: Iterable[Fact]) -> Iterable[float]:
    return (it.t for it in facts if it.t is not None and math.isfinite(it.t))


def _zone_s(ahead_s: float) -> float:
    """The zone that explains it, else 0.

    >>> _zone_s(8 * 3600 - 20.0), _zone_s(-7 * 3600 - 1.5), _zone_s(-30.0), _zone_s(1000.0)
    (28800.0, -25200.0, 0.0, 0.0)
    """
    zone_s = math.ceil((ahead_s - _EARLY_S) / _GRID_S) * _GRID_S
    return zone_s if abs(zone_s) <= _FURTHEST_S and zone_s - ahead_s <= _LATE_S else 0.0
