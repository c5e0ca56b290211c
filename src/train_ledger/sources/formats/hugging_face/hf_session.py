"""At which step is one training of the Hugging Face Trainer, by the records and bars of one writer?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats.hugging_face.hf_line import Bar, Printed, resolution
from train_ledger.sources.formats.hugging_face.hf_log import Reported, SessionRate, is_record, numbers_of

__all__ = ["Session", "Where"]

_MOST_BARS = 3
"""Bars of others (of an evaluation, of a loader) that tqdm may draw between a record and the training's."""
_BAR_RESOLUTION_S = 1.0
_STEP = re.compile(r"(\d{1,12})(?:/\d{1,12})?\Z")
"""ms-swift adds the step and the last one to each record; transformers 3 printed the step, too."""
_SPEAKS_OF_STEPS = ("loss", "grad_norm", "learning_rate")


@dataclass(frozen=True, slots=True)
class Where:
    """When, by whom and in which line something was printed."""

    t: float
    rank: int | None
    host: str | None
    source: str

    def event(self, name: str, step: int | None, /, **details: Any) -> Event:
        """What goes into the details may have any name: some are the log's."""
        return Event(self.t, name, self.rank, step, 0, self.host, self.source, details)

    @property
    def line(self) -> int | None:
        number = self.source.rpartition(":")[2]
        return int(number) if number.isdecimal() and len(number) < 19 else None


@dataclass(slots=True)
class _Waiting:
    """A record whose bar has not been seen yet."""

    printed: Printed
    numbers: dict[str, float]
    where: Where
    bars: int = 0

    @property
    def is_training(self) -> bool:
        return any(key in self.numbers for key in _SPEAKS_OF_STEPS)


class Session:
    """Hand in what one writer printed, in its order; `total` is the length of the training's own bar."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.step = 0
        self._other_total: int | None = None
        self._waiting: _Waiting | None = None
        self._saving: Event | None = None
        self._drawn: tuple[int, int] | None = None
        self.begin()

    def begin(self, t: float = math.nan) -> None:
        """A training begins, at `t` where that is told: its bar starts anew, and so does the bar's clock."""
        self.step = 0
        self._began_t = t
        self._tokens = SessionRate()
        self.pause()

    def pause(self) -> None:
        """What comes now is no training: the time of a step is measured from the next one on."""
        self._steps = SessionRate()

    @property
    def waits(self) -> bool:
        return self._waiting is not None

    def read(self, part: Bar | Printed, where: Where) -> Iterator[Fact]:
        if isinstance(part, Bar):
            yield from self._bar(part, where)
        elif is_record(part.words):
            yield from self.pass_over()
            told = _STEP.match(part.words.get("global_step/max_steps") or part.words.get("step", ""))
            if told is not None:
                yield from self._numbered(part, int(told[1]), where)
                return
            self._waiting = _Waiting(part, numbers_of(part.words), where)
            if not self._waiting.is_training:
                yield from self._went_on(None, where)
                self.pause()

    def _numbered(self, part: Printed, step: int, where: Where) -> Iterator[Fact]:
        """A record that tells its step itself needs no bar."""
        yield from self._went_on(step, where)
        self.step = step
        yield from self._reported(_Waiting(part, numbers_of(part.words), where), step, None)

    def save(self, step: int | None, path: str, where: Where) -> Iterator[Fact]:
        """A save begins; that it succeeded no line tells, but that the training went on after it."""
        self.pause()
        self._saving = where.event("ckpt_start", step, path=path)
        yield self._saving

    def _at(self, bar: Bar, where: Where) -> float:
        """When a bar was drawn, to a second: it is made right behind the line that tells of the start."""
        return where.t if math.isfinite(where.t) else self._began_t + bar.elapsed_s

    def _bar(self, bar: Bar, where: Where) -> Iterator[Fact]:
        waiting = self._waiting
        if waiting is not None:
            yield from self._settle(waiting, bar, where)
        elif bar.total == self.total and self.step < bar.done <= bar.total:
            yield from self._went_on(bar.done, where)
            self.step = bar.done
            yield Step(
                self._at(bar, where), bar.done, where.rank, 0, where.host, where.source, self._pace(bar)
            )
        self._drawn = (bar.done, bar.total)

    def _settle(self, waiting: _Waiting, bar: Bar, where: Where) -> Iterator[Fact]:
        """Whether this is the training's bar, drawn behind the record that waits."""
        if not self._is_training_bar(waiting, bar):
            waiting.bars += 1
            if waiting.bars >= _MOST_BARS:
                yield from self.pass_over()
            return
        before, here = waiting.where.line, where.line
        # An empty line may lie between where the bar in front of the record is the one behind it.
        most = 1 + waiting.bars + (self._drawn == (bar.done, bar.total))
        if before is not None and here is not None and not before <= here <= before + most:
            yield from self.pass_over()
            return
        self._waiting = None
        if not waiting.is_training:
            yield from self._reported(waiting, bar.done, None)
            return
        yield from self._went_on(bar.done, where)
        if bar.done < self.step:
            self._steps = SessionRate()
        self.total, self.step = bar.total, bar.done
        yield from self._reported(waiting, bar.done, bar)

    def _is_training_bar(self, waiting: _Waiting, bar: Bar) -> bool:
        if not 0 < bar.done <= bar.total:
            return False
        if bar.total == self.total or not waiting.is_training:
            return bar.total == self.total
        # Twice the same other length behind records of the training: another training has begun.
        is_new = self.total is None or (bar.total == self._other_total and waiting.bars == 0)
        self._other_total = bar.total
        return is_new

    def _reported(self, waiting: _Waiting, step: int | None, bar: Bar | None) -> Iterator[Fact]:
        where, numbers = waiting.where, waiting.numbers
        pace = self._pace(bar) if bar is not None else {}
        speed = self._speed(waiting, bar)
        t = self._at(bar, where) if bar is not None else where.t
        told = Reported(numbers, step, t, where.rank, where.host, where.source, speed, pace)
        yield from told.facts()

    def _speed(self, waiting: _Waiting, bar: Bar | None) -> float | None:
        tokens = waiting.numbers.get("num_input_tokens_seen")
        if tokens is None or not waiting.is_training:
            return None
        seconds = waiting.numbers.get("train_runtime")
        if seconds is not None:
            is_rounded = "train_runtime" in waiting.printed.quoted
            finest_s = resolution(waiting.printed.words["train_runtime"]) if is_rounded else 0.0
            return self._tokens.add(tokens, seconds, finest_s)
        return self._tokens.add(tokens, bar.elapsed_s, _BAR_RESOLUTION_S) if bar is not None else None

    def _pace(self, bar: Bar) -> dict[str, float]:
        """The mean time of the steps since the last that was measured, by the bar's whole seconds."""
        per_s = self._steps.add(bar.done, bar.elapsed_s, _BAR_RESOLUTION_S)
        return {"step_time_s": 1.0 / per_s} if per_s else {}

    def _went_on(self, step: int | None, where: Where) -> Iterator[Fact]:
        saving = self._saving
        if saving is not None and (step is None or saving.step is None or step > saving.step):
            self._saving = None
            yield where.event("ckpt_saved", saving.step, told_by="the training went on")

    def pass_over(self) -> Iterator[Fact]:
        """Something else was printed: what waits gets no step."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            yield from self._reported(waiting, None, None)
