"""How are many steps laid into slots of time?

Windows of minutes and hours are kept as a few sums a slot, so that they cost the same however short the steps
are. One by one or many at once gives the same slots.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["can_seat", "pieces", "seat", "slot_s"]

_Trend = TypeVar("_Trend")


def slot_s(window_s: float, slots: int) -> int:
    """How long one of so many slots of a window is, in whole seconds: their bounds are exact then.

    >>> slot_s(600.0, 20), slot_s(5.0, 20)
    (30, 1)
    """
    return max(1, round(window_s / slots))


def pieces(times: Sequence[float], slot_s: int, newest: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Where each slot begins and ends in times that do not fall: (slot, start, end).

    Of the `newest` slots alone, where so many are wanted, counted back from that of the last time.

    >>> list(pieces([58.0, 59.5, 60.0, 185.0], 60))
    [(0, 0, 2), (1, 2, 3), (3, 3, 4)]
    >>> list(pieces([58.0, 59.5, 60.0, 185.0], 60, newest=3))
    [(1, 2, 3), (3, 3, 4)]
    """
    start = 0
    if newest is not None:
        oldest_t = (int(times[-1] // slot_s) - newest + 1) * slot_s
        start = 0 if times[0] >= oldest_t else bisect_left(times, oldest_t)
    while start < len(times):
        slot = int(times[start] // slot_s)
        limit_t = (slot + 1) * slot_s
        end = len(times) if times[-1] < limit_t else bisect_left(times, limit_t, start)
        yield slot, start, end
        start = end


def can_seat(seats: dict[int, _Trend], rank: int, most: int) -> bool:
    """Whether this rank has one of the seats, or would get one."""
    return rank in seats or len(seats) < most or rank < max(seats)


def seat(seats: dict[int, _Trend], rank: int, most: int, make: Callable[[], _Trend]) -> _Trend | None:
    """The trend of this rank, if it is among the `most` lowest ones that ever asked for a seat; else None.

    In whichever order ranks come, those that are left have kept theirs from their first step on.
    """
    if rank not in seats:
        if not can_seat(seats, rank, most):
            return None
        if len(seats) >= most:
            del seats[max(seats)]
        seats[rank] = make()
    return seats[rank]
