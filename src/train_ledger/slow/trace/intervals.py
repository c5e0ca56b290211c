"""How do sets of time overlap?

A set of time is an array of shape (n, 2) of nanoseconds, half-open, sorted, without overlaps or touches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Intervals", "both", "clipped", "either", "length_ns", "nothing", "union", "without"]

Intervals = npt.NDArray[np.int64]
_Mask: TypeAlias = npt.NDArray[np.bool_]


def nothing() -> Intervals:
    """The empty set."""
    return np.empty((0, 2), dtype=np.int64)


def union(start: npt.ArrayLike, end: npt.ArrayLike) -> Intervals:
    """All time that lies in any of these intervals, in whichever order they come.

    >>> union([5, 0, 2], [9, 3, 4]).tolist()
    [[0, 4], [5, 9]]
    """
    starts, ends = np.asarray(start, dtype=np.int64), np.asarray(end, dtype=np.int64)
    kept = ends > starts
    starts, ends = starts[kept], ends[kept]
    if not len(starts):
        return nothing()
    order = np.argsort(starts, kind="stable")
    starts, reached = starts[order], np.maximum.accumulate(ends[order])
    begins = np.concatenate(([True], starts[1:] > reached[:-1]))
    last = np.concatenate((np.flatnonzero(begins)[1:] - 1, [len(starts) - 1]))
    return np.column_stack((starts[begins], reached[last]))


def length_ns(intervals: Intervals) -> int:
    """How much time it is."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def clipped(intervals: Intervals, start: int, end: int) -> Intervals:
    """What of it lies between two moments."""
    if not len(intervals) or start >= end:
        return nothing()
    first = np.searchsorted(intervals[:, 1], start, side="right")
    last = np.searchsorted(intervals[:, 0], end, side="left")
    cut = np.clip(intervals[first:last], start, end)
    return cut[cut[:, 1] > cut[:, 0]]


def both(one: Intervals, other: Intervals) -> Intervals:
    """The time that lies in both."""
    return _where(one, other, lambda in_one, in_other: in_one & in_other)


def either(one: Intervals, other: Intervals) -> Intervals:
    """The time that lies in either."""
    together = np.concatenate((one, other))
    return union(together[:, 0], together[:, 1])


def without(one: Intervals, other: Intervals) -> Intervals:
    """The time of the first that does not lie in the second."""
    return _where(one, other, lambda in_one, in_other: in_one & ~in_other)


def _where(one: Intervals, other: Intervals, rule: Callable[[_Mask, _Mask], _Mask]) -> Intervals:
    if not len(one):
        return nothing()
    moments = np.sort(np.concatenate((one.ravel(), other.ravel())))
    chosen = rule(_covers(one, moments[:-1]), _covers(other, moments[:-1]))
    return union(moments[:-1][chosen], moments[1:][chosen])


def _covers(intervals: Intervals, moments: npt.NDArray[np.int64]) -> _Mask:
    """Whether each moment lies in it."""
    if not len(intervals):
        return np.zeros(len(moments), dtype=bool)
    place = np.searchsorted(intervals[:, 0], moments, side="right") - 1
    inside = place >= 0
    inside[inside] = moments[inside] < intervals[place[inside], 1]
    return inside
