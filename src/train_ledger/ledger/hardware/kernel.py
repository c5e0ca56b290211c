"""How often did the kernel report an XID, and what is each report worth?

Lines that come within a minute of each other are one event: one crash writes hundreds. Events of a GPU and
code are counted for the codes that page only when they come again; which of them were in the time of the run
is asked when they are shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from train_ledger.config import Xid
from train_ledger.ledger.hardware.records import XidState
from train_ledger.ledger.xids import Level, level_here

__all__ = ["Reports"]

_BURST_S = 60.0
_DAY_S = 86_400.0
_EVENTS = 64


@dataclass(slots=True)
class _Event:
    level: Level
    first_t: float
    last_t: float
    lines: int
    text: str
    pid: int | None


class Reports:
    """What the kernel of one host said of one code of one GPU, in the order of its log."""

    __slots__ = ("_events", "code", "lines")

    def __init__(self, code: int) -> None:
        self.code = code
        self.lines = 0
        self._events: deque[_Event] = deque(maxlen=_EVENTS)

    def add(self, t: float, text: str, pid: int | None, overrides: Xid, lines: int = 1) -> None:
        """A line at `t` by its host's clock, or so many of which it is the last."""
        self.lines += lines
        near = [it for it in self._events if abs(t - it.last_t) < _BURST_S]
        times = sum(t - it.last_t < _DAY_S for it in self._events) + (0 if near else 1)
        level = level_here(self.code, text, times=times, overrides=overrides)
        for event in near:
            if event.level == level:
                event.last_t, event.text = max(t, event.last_t), text
                event.lines += lines
                return
        self._events.append(_Event(level, t, t, lines, text, pid))

    def pids(self, since_t: float) -> Iterator[int]:
        """The processes that were named since then."""
        yield from (it.pid for it in self._events if it.pid is not None and it.last_t >= since_t)

    def shown(self, since_t: float, on_zero: Callable[[float], float]) -> Iterator[XidState]:
        """One state a level, of the events since `since_t` by the host's clock."""
        events = sorted((it for it in self._events if it.last_t >= since_t), key=lambda it: it.level)
        for level, of_level in groupby(events, key=lambda it: it.level):
            those = sorted(of_level, key=lambda it: it.last_t)
            yield XidState(
                code=self.code,
                level=level,
                count=sum(it.lines for it in those),
                first_t=on_zero(those[0].first_t),
                last_t=on_zero(those[-1].last_t),
                text=those[-1].text,
            )
