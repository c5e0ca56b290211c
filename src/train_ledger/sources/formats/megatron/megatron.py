"""What do Megatron-LM and those built on it (Megatron-DeepSpeed, GPT-NeoX, NeMo, Primus) print as they train?

Lines of iterations, of timers, of memory, of stragglers, of evaluations, and of the run's life. Rank 0 and
the last rank write into one log, so a line's rank is that which its front names, else unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats.megatron.megatron_iteration import (
    FIELDS_OF_ITERATIONS,
    Iteration,
    Iterations,
    iteration_in,
)
from train_ledger.sources.formats.megatron.megatron_layouts import Layouts
from train_ledger.sources.formats.megatron.megatron_life import (
    FIELDS_OF_MEMORY,
    LIFE_MARKS,
    Happened,
    happened,
    memory_in,
    validated,
)
from train_ledger.sources.formats.megatron.megatron_straggler import FIELDS_OF_STRAGGLERS, straggler_report
from train_ledger.sources.formats.megatron.megatron_timers import (
    FIELDS_OF_TIMERS,
    Timed,
    TimerBlock,
    timers_in,
)
from train_ledger.sources.formats.trainer_front import Front, is_source_code, read_front
from train_ledger.sources.lines.log_line import LogLine

__all__ = ["Megatron"]

_MOST_PARTS = 8
_LONGEST = 64 << 10
_GOES_ON = re.compile(r"\s{0,8}[\d.eE+-]{0,20}\s{0,8}\|")


class Megatron:
    """A `LineFormat`. A line that a terminal or a page broke in two is put together again."""

    name: ClassVar[str] = "Megatron"
    marks: ClassVar[tuple[bytes, ...]] = (b" |", b"across ranks (ms):", *LIFE_MARKS)
    knows: ClassVar[frozenset[str]] = (
        FIELDS_OF_ITERATIONS | FIELDS_OF_TIMERS | FIELDS_OF_MEMORY | FIELDS_OF_STRAGGLERS
    )

    def __init__(self) -> None:
        self.damaged: Counter[str] = Counter()
        self._iterations = Iterations()
        self._layouts = Layouts()
        self._block = TimerBlock()
        self._saved: int | None = None
        self._set_up: dict[str, float] = {}
        self._open: tuple[LogLine, str, int] | None = None

    @property
    def wants_more(self) -> bool:
        """Whether a line broke off, or a block of timers goes on."""
        return self._open is not None or self._block.is_open

    def read(self, line: LogLine, source: str) -> Iterator[Fact]:
        if self._open is not None:
            begun, of_source, parts = self._open
            joined = begun.text.rstrip("\r\n") + line.text
            if parts < _MOST_PARTS and len(joined) <= _LONGEST and _continues(begun.text, line.text):
                self._open = None
                whole = LogLine(joined, begun.rank, begun.local_rank, begun.host, begun.t)
                yield from self._iteration(whole, of_source, parts + 1)
                return
            yield from self._finish()
        yield from self._line(line, source)

    def end(self) -> Iterator[Fact]:
        return self._finish()

    def _finish(self) -> Iterator[Fact]:
        if self._open is not None:
            (line, source, _), self._open = self._open, None
            yield from self._iteration(line, source, _MOST_PARTS)

    def _line(self, line: LogLine, source: str) -> Iterator[Fact]:
        text = line.text
        if "iteration" in text and "|" in text:
            facts = list(self._iteration(line, source, 1))
            if facts or self._open is not None:
                yield from facts
                return
        if self._block.begins(text):
            return
        if self._block.is_open:
            timers = list(self._block.row(text))
            yield from self._timers(timers, line, source)
            if timers:
                return
        yield from self._others(line, source)

    def _iteration(self, line: LogLine, source: str, parts: int) -> Iterator[Fact]:
        """The facts of a line of an iteration; one that is not closed waits for the next line."""
        found = iteration_in(line.text, self._layouts)
        if found is None or is_source_code(line.text[: found[0]]):
            return
        start, iteration = found
        if not iteration.closed and parts < _MOST_PARTS:
            self._open = (line, source, parts)
            return
        if iteration.broken:
            self.damaged["an iteration's line that breaks off"] += 1
        yield from self._told(iteration, read_front(line, line.text[:start]), source)

    def _told(self, iteration: Iteration, front: Front, source: str) -> Iterator[Fact]:
        if not iteration.values:
            return
        if self._set_up:
            yield self._started(front, source)
        yield from self._iterations.facts(iteration, front, source)

    def _started(self, front: Front, source: str) -> Event:
        """The start is over; what its timers told is told with it."""
        details, self._set_up = {"phase": "start_up", **self._set_up}, {}
        return Event(front.t, "phase_end", front.rank, None, 0, front.host, source, details)

    def _others(self, line: LogLine, source: str) -> Iterator[Fact]:
        text = line.text
        if "time (ms)" in text:
            yield from self._timers(timers_in(text), line, source)
        elif "/Rnk: " in text:
            yield from self._stragglers(line, source)
        elif " memory (" in text:
            yield from self._memory(line, source)
        elif (" at iteration" in text or " at the end" in text) and "|" in text:
            yield from self._evaluation(line, source)
        elif (event := happened(text)) is not None:
            yield from self._event(event, line, source)

    def _timers(self, timers: list[Timed], line: LogLine, source: str) -> Iterator[Fact]:
        """The timers as values of the iteration (a checkpoint's as one of where it was taken)."""
        front = read_front(line, line.text[:64])
        by_step: dict[tuple[int, int | None], dict[str, float]] = {}
        for timed in timers:
            step = self._saved if timed.name.startswith("save_checkpoint") else self._iterations.number
            if timed.set_up:
                self._set_up.update(timed.values)
            elif step is None:
                self.damaged["timers before the first iteration"] += 1
            elif timed.values:
                rank = timed.rank if timed.rank is not None else front.rank
                by_step.setdefault((step, rank), {}).update(timed.values)
        for (step, rank), values in by_step.items():
            yield Step(front.t, step, rank, 0, front.host, source, values)

    def _stragglers(self, line: LogLine, source: str) -> Iterator[Fact]:
        front, number = read_front(line, line.text[:160]), self._iterations.number
        report = straggler_report(line.text)
        for rank, values in report.items():
            if number is not None:
                yield Step(front.t, number, rank, source=source, values=values)
            else:
                yield Event(front.t, "straggler_report", rank, source=source, details=dict(values))

    def _memory(self, line: LogLine, source: str) -> Iterator[Step]:
        front = read_front(line, "")
        for memory in memory_in(line.text):
            rank = memory.rank if memory.rank is not None else front.rank
            yield Step(front.t, memory.step, rank, 0, front.host, source, memory.values)

    def _evaluation(self, line: LogLine, source: str) -> Iterator[Fact]:
        found = validated(line.text)
        if found is None:
            return
        front = read_front(line, line.text[: found.at])
        step = found.step if found.step is not None else self._iterations.number
        if step is not None:
            yield Step(front.t, step, front.rank, 0, front.host, source, found.values)
        details = {"set": found.which, **found.values}
        yield Event(front.t, "eval_end", front.rank, step, 0, front.host, source, details)

    def _event(self, event: Happened, line: LogLine, source: str) -> Iterator[Fact]:
        front = read_front(line, line.text)
        if event.name in ("run_start", "phase_end"):
            self._iterations.start()
        if event.name == "phase_end":
            yield self._started(front, source)
            return
        if event.name in ("ckpt_start", "ckpt_saved"):
            self._saved = event.step
        if "SIGTERM" in event.details.get("reason", ""):
            number = {"number": 15}
            yield Event(front.t, "signal", front.rank, event.step, 0, front.host, source, number)
        yield Event(front.t, event.name, front.rank, event.step, 0, front.host, source, event.details)


def _continues(begun: str, text: str) -> bool:
    """Whether `text` goes on with a line that broke off: then more fields are known of both than of one."""
    before, joined = iteration_in(begun), iteration_in(begun.rstrip("\r\n") + text)
    if before is None or joined is None or iteration_in(text) is not None:
        return False
    goes_on = before[1].broken or _GOES_ON.match(text) is not None
    return goes_on and len(_known(joined[1])) > len(_known(before[1]))


def _known(iteration: Iteration) -> set[str]:
    return {name for name in iteration.values if name in FIELDS_OF_ITERATIONS}
