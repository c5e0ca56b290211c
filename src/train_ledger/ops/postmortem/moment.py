"""What is one line of a timeline?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["Moment", "day", "in_order", "stamps"]


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


def stamps(moments: Iterable[Moment]) -> list[str]:
    """Hours, minutes and seconds of UTC of each, with the day where it is not that of the one before."""
    told, today = [], None
    for it in moments:
        stamp = "--:--:--" if it.t is None else f"{datetime.fromtimestamp(it.t, UTC):%H:%M:%S}"
        of = day(it.t) if it.t is not None else today
        told.append(f"{of} {stamp}" if today not in (None, of) else stamp)
        today = of
    return told


def day(t: float | None) -> str:
    """The day of UTC."""
    return "undated" if t is None else f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d}"
