"""What is one line of a timeline?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["Moment", "clock_time", "day", "in_order"]


@dataclass(frozen=True, slots=True)
class Moment:
    """Something happened at `t` (unix seconds on the run's clock, None where nobody says when).

    `source` is "file:line" or a file, relative to the run directory where it lies in it; `clock` says whose
    clock told the time. `xid` is the code of a fault that the kernel reported, and `pages` that it is one
    of those that wake people.
    """

    t: float | None
    text: str
    source: str
    clock: str = ""
    host: str | None = None
    rank: int | None = None
    xid: int | None = None
    pages: bool = False

    @property
    def where(self) -> str:
        """Source and clock, as they stand behind the line."""
        return "; ".join(part for part in (self.source, self.clock) if part)


def in_order(moments: Iterable[Moment]) -> list[Moment]:
    """By time; one without a time stays behind the one that it was told after."""
    last_t, keyed = float("-inf"), []
    for number, it in enumerate(moments):
        last_t = it.t if it.t is not None else last_t
        keyed.append((last_t, number, it))
    return [it for _, _, it in sorted(keyed, key=lambda key: key[:2])]


def clock_time(t: float | None) -> str:
    """Hours, minutes and seconds of UTC."""
    return "--:--:--" if t is None else f"{datetime.fromtimestamp(t, UTC):%H:%M:%S}"


def day(t: float | None) -> str:
    """The day of UTC."""
    return "undated" if t is None else f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d}"
