"""Which part of the run is drawn?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

__all__ = ["GanttError", "Selection", "rank_ranges", "step_range"]

_RANGE = re.compile(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*\Z")
_STEPS = re.compile(r"\s*(\d{0,18})\s*:\s*(\d{0,18})\s*\Z")


class GanttError(Exception):
    """The Gantt cannot be drawn; the text says which file or option, and what to do."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Steps `first_step` to `last_step`, both included, of some ranks, between two moments.

    Moments are unix seconds on the clock of rank 0's host. `ranks` None means all.
    """

    first_step: int = 0
    last_step: int | None = None
    ranks: tuple[range, ...] | None = None
    since_t: float = -math.inf
    until_t: float = math.inf

    def has_rank(self, rank: int) -> bool:
        return self.ranks is None or any(rank in part for part in self.ranks)

    def has_step(self, step: int) -> bool:
        return step >= self.first_step and (self.last_step is None or step <= self.last_step)

    def touches(self, start_t: float, end_t: float) -> bool:
        """Whether something that lasted from start to end is at least partly within the moments."""
        return end_t >= self.since_t and start_t <= self.until_t


def step_range(text: str) -> tuple[int, int | None]:
    """The first and last step of "100:120", ":120" or "100:"; raises GanttError.

    >>> step_range("100:120"), step_range("100:"), step_range(":120")
    ((100, 120), (100, None), (0, 120))
    """
    match = _STEPS.match(text)
    if match is None or not (match[1] or match[2]):
        raise GanttError(f"{text!r} are no steps; wanted is FIRST:LAST, like 100:120")
    first, last = int(match[1] or 0), int(match[2]) if match[2] else None
    if last is not None and last < first:
        raise GanttError(f"{text!r} are no steps: the last is before the first")
    return first, last


def rank_ranges(text: str) -> tuple[range, ...]:
    """The ranks of "0-15,32"; raises GanttError.

    >>> rank_ranges("0-15,32")
    (range(0, 16), range(32, 33))
    """
    ranges = []
    for part in text.split(","):
        match = _RANGE.match(part)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise GanttError(f"{text!r} are no ranks; wanted are numbers and ranges, like 0-15,32")
        ranges.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(ranges)
