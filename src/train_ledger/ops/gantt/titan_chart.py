"""What does one rank's row of the Gantt show, from torchtitan's structured logs?

Spans have true times. An end closes the span of its name that its task opened last; tasks of one process
overlap, so each has a thread of its own. A span whose end never came – the process was killed – is drawn up
to the last record. Each file is one start of the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from train_ledger.ops.gantt.lanes import Lanes, Threads
from train_ledger.ops.gantt.selection import Selection
from train_ledger.ops.gantt.tally import Tally
from train_ledger.ops.gantt.trace_file import TraceFile, encoded, microseconds
from train_ledger.sources.formats.torchtitan.torchtitan_record import Record

__all__ = ["TitanChart"]

_MOST_TASKS = 500
_LONGEST_TEXT = 300


@dataclass(slots=True)
class _Task:
    label: str
    lanes: Lanes
    step: int | None = None


class TitanChart:
    """Draws the records of one file, handed in as they come.

    `lead_s` is by how much its host's clock is ahead of that of rank 0's host; `counters` are the scalars
    that are drawn as graphs.
    """

    def __init__(
        self,
        rank: int,
        attempt: int,
        trace: TraceFile,
        threads: Threads,
        selection: Selection,
        tally: Tally,
        lead_s: float,
        counters: Sequence[str] = (),
    ) -> None:
        self._rank = rank
        self._attempt = attempt
        self._trace = trace
        self._threads = threads
        self._selection = selection
        self._tally = tally
        self._lead_s = lead_s
        self._counters = frozenset(counters)
        self._tasks: dict[tuple[str, str], _Task] = {}
        self._latest_us: int | None = None
        self._step: int | None = None

    def add(self, record: Record, place: str) -> None:
        """Draw one record."""
        if not math.isfinite(record.t):
            self._tally.miss("record without a time", place)
            return
        at_us = microseconds(record.t - self._lead_s)
        if self._latest_us is None:
            self._tally.attempts.add(self._attempt)
            self._instant("events", f"attempt {self._attempt} starts", at_us, {}, "attempt", "p")
        self._latest_us = at_us if self._latest_us is None else max(at_us, self._latest_us)
        self._step = record.at_step if record.at_step is not None else self._step
        task = self._task(record)
        if task is None:
            self._tally.miss("record of one task too many", place)
            return
        self._draw(record, task, at_us, place)

    def end(self) -> None:
        """The file ends."""
        for task in self._tasks.values():
            if self._latest_us is not None:
                self._tally.unfinished += task.lanes.close_all(self._latest_us)
            if task.lanes.forgotten:
                self._tally.miss("span among too many open ones", f"rank {self._rank}", task.lanes.forgotten)

    def _draw(self, record: Record, task: _Task, at_us: int, place: str) -> None:
        kind = record.kind
        name, _, how = kind.rpartition("_")
        step = {} if record.at_step is None else {"step": record.at_step}
        if kind == "metric_value":
            self._count(record, at_us)
        elif record.log_type == "instant":
            self._instant(task.label, kind or "instant", at_us, step, "event", "t")
        elif how == "start" and name:
            task.lanes.open(name, at_us, {**step, "attempt": self._attempt})
        elif how == "end" and name:
            took_ms = record.number
            measured = {} if took_ms is None else {"measured_s": took_ms / 1e3}
            if not task.lanes.close(name, at_us, measured):
                self._tally.miss("end of a span that did not begin", place)
        elif how == "error" and name:
            said = record.message[:_LONGEST_TEXT] if isinstance(record.message, str) else ""
            self._instant(task.label, f"{name} failed", at_us, {**step, "message": said}, "fault", "p")

    def _count(self, record: Record, at_us: int) -> None:
        name, value = record.event_name, record.number
        wanted = name in self._counters if isinstance(name, str) else False
        if wanted and value is not None and math.isfinite(value) and self._is_wanted():
            self._trace.counter(self._rank, self._threads["events"], name, at_us, value)

    def _task(self, record: Record) -> _Task | None:
        """By the mesh that wrote it and its asyncio task, or its thread where it has none."""
        source = record.whose[0] or "training"
        named = record.task_name if isinstance(record.task_name, str) else ""
        key = (source, named or str(record.tid))
        task = self._tasks.get(key)
        if task is None and len(self._tasks) < _MOST_TASKS:
            is_first = not any(of == source for of, _ in self._tasks)
            label = source if is_first and not named else f"{source} · {named or f'thread {record.tid}'}"
            label = label[:_LONGEST_TEXT]
            task = self._tasks[key] = _Task(label, Lanes(self._emitter(label)))
        return task

    def _emitter(self, label: str) -> Callable[[int, str, int, int, str], None]:
        def emit(lane: int, name: str, start_us: int, end_us: int, args: str) -> None:
            if self._is_wanted() and self._selection.touches(start_us / 1e6, end_us / 1e6):
                tid = self._threads[label if lane == 0 else f"{label} ({lane + 1})"]
                self._trace.slice(self._rank, tid, name, "span", start_us, end_us, args)
                self._tally.spans += 1

        return emit

    def _instant(
        self, label: str, name: str, at_us: int, args: dict[str, Any], category: str, scope: str
    ) -> None:
        if self._is_wanted() and self._selection.touches(at_us / 1e6, at_us / 1e6):
            shown = encoded({**args, "attempt": self._attempt})
            self._trace.instant(self._rank, self._threads[label], name, category, at_us, shown, scope)

    def _is_wanted(self) -> bool:
        if self._step is None:
            return self._selection.first_step == 0
        return self._selection.has_step(self._step)
