"""On which line of the picture does a span stand, when spans may overlap without being nested?

A thread of a trace holds a tree: two spans on it are nested or apart, or Perfetto shows them wrongly. Spans
come in the order in which they end. A span that is open while another one ends, and began within it, cannot
stand on that one's line any more; it takes the next. So only what is open is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from train_ledger.ops.gantt.trace_file import encoded

__all__ = ["Lanes", "Threads"]

_MOST_OPEN = 256
_MOST_LANES = 64
_THREADS = 1000
_FIRST = ("steps", "phases", "checkpoints", "events")
"""The threads that stand above all others, from the top."""

Emit = Callable[[int, str, int, int, str], None]
"""Called with the number of the line, name, start, end and args."""


@dataclass(slots=True)
class _Open:
    name: str
    start_us: int
    args: Mapping[str, Any]
    taken: set[int] = field(default_factory=set)


class Lanes:
    """Spans of one series, such as the phases of a rank; `emit` draws one when it has ended."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open: list[_Open] = []
        self._ends: list[int] = []
        self._latest_us = -(1 << 62)
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._open)

    def open(self, name: str, at_us: int, args: Mapping[str, Any]) -> None:
        """A span begins; one that is told late may begin before others have ended."""
        starts = {it.start_us for it in self._open}
        while at_us in starts:  # which of two is the outer one is told by their starts alone
            at_us += 1
        if len(self._open) >= _MOST_OPEN:
            self._open.pop(0)
            self.forgotten += 1
        taken = {lane for lane, end_us in enumerate(self._ends) if end_us > at_us}
        self._open.append(_Open(name, at_us, args, taken))

    def close(self, name: str, at_us: int, args: Mapping[str, Any]) -> bool:
        """The span of this name that began last ends; False where none is open."""
        found = next((it for it in reversed(self._open) if it.name == name), None)
        if found is None:
            return False
        self._open.remove(found)
        self._draw(found, at_us, args)
        return True

    def close_all(self, at_us: int) -> int:
        """Draw what never ended up to `at_us`; how many those are."""
        left = len(self._open)
        while self._open:
            self._draw(self._open.pop(), at_us, {"unfinished": True})
        return left

    def _draw(self, span: _Open, end_us: int, args: Mapping[str, Any]) -> None:
        end_us = max(end_us, span.start_us, self._latest_us)
        self._latest_us = end_us
        lane = next((lane for lane in range(_MOST_LANES) if lane not in span.taken), None)
        if lane is None:
            self.forgotten += 1
            return
        self._ends += [end_us] * (lane + 1 - len(self._ends))
        self._ends[lane] = end_us
        for other in self._open:
            if span.start_us < other.start_us < end_us:
                other.taken.add(lane)
        self._emit(lane, span.name, span.start_us, end_us, encoded({**span.args, **args}))


class Threads:
    """The threads of one process, numbered as they are met; numbers are unique in the whole trace.

    Perfetto looks a thread up by its number among all processes.
    """

    def __init__(self, pid: int, name: Callable[[str, int, int, str | int], None]) -> None:
        self.pid = pid
        self._name = name
        self._known: dict[str, int] = {}

    def __getitem__(self, label: str) -> int:
        tid = self._known.get(label)
        if tid is None:
            place = min(len(self._known) + 1, _THREADS - 1)
            tid = self._known[label] = self.pid * _THREADS + place
            self._name("thread_name", self.pid, tid, label)
            order = _FIRST.index(label) if label in _FIRST else len(_FIRST) + place
            self._name("thread_sort_index", self.pid, tid, order)
        return tid
