"""Which spans of a process are open, and which one does an end close?

Records pair last in, first out within one asyncio task, or one thread where there is none. An end whose start
was lost closes nothing; one whose inner spans lost their ends closes those with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from train_ledger.sources.formats.torchtitan.torchtitan_record import Record

__all__ = ["OpenSpans", "Span"]

_DEEPEST = 256
_MOST_TASKS = 1 << 14

_Task = tuple[object, object]


@dataclass(slots=True)
class Span:
    name: str
    t: float
    step: int | None
    place: str
    failed: bool = False


class OpenSpans:
    """The open spans of each task, outermost first."""

    def __init__(self) -> None:
        self._tasks: dict[_Task, list[Span]] = {}

    def begin(self, record: Record, name: str, place: str) -> bool:
        """Opens a span; whether no other was open in its task."""
        key = _task(record)
        spans = self._tasks.get(key)
        if spans is None:
            if len(self._tasks) >= _MOST_TASKS:  # of ends that never came
                del self._tasks[next(iter(self._tasks))]
            spans = self._tasks[key] = []
        if len(spans) >= _DEEPEST:
            del spans[0]
        spans.append(Span(name, record.t, record.at_step, place))
        return len(spans) == 1

    def fail(self, record: Record, name: str) -> None:
        for span in reversed(self._tasks.get(_task(record), ())):
            if span.name == name:
                span.failed = True
                return

    def finish(self, record: Record, name: str) -> Span | None:
        """Closes the innermost span of this name in its task; None where none is open."""
        key = _task(record)
        spans = self._tasks.get(key, [])
        at = next((it for it in range(len(spans) - 1, -1, -1) if spans[it].name == name), None)
        if at is None:
            return None
        span = spans[at]
        del spans[at:]
        if not spans:
            del self._tasks[key]
        return span

    def is_outermost(self, record: Record) -> bool:
        """Whether nothing is open in the task of this record."""
        return _task(record) not in self._tasks

    def inside(self) -> list[list[Span]]:
        return [spans for spans in self._tasks.values() if spans]


def _task(record: Record) -> _Task:
    """Threads have tasks of their own, and names of tasks may repeat across them."""
    task, thread = record.task_name, record.tid
    return (
        task if isinstance(task, str | int) else None,
        thread if isinstance(thread, str | int) else None,
    )
