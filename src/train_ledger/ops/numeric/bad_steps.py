"""At which steps was the loss no number, in every attempt, and at which data did the run stand there?

Of a rank's signals only lines with such values, and those of the steps that are asked for, are looked at; a
run without signals tells it by its logs.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from train_ledger.facts import Step
from train_ledger.ledger import RunState, known_at
from train_ledger.ledger.positions import POSITION_FIELDS
from train_ledger.run_dir import RunDir
from train_ledger.slow.table.cut import AfterTime
from train_ledger.slow.table.files import RankFiles
from train_ledger.sources import SignalDecoder, read_run

__all__ = ["BadStep", "Steps", "steps_of"]

_BAD = rb'"(?:loss|grad_norm)": ?"?-?(?:NaN|Infinity)'
_LARGEST_FILE_BYTES = 1 << 30
_MOST_LINES = 20_000
_LINE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class BadStep:
    """The first step of an attempt whose loss was not finite; `position` is the data consumed by its end."""

    attempt: int
    step: int
    t: float
    position: int | None
    source: str


class Steps(Protocol):
    """What one rank told of single steps."""

    def bad(self) -> Iterable[Step]:
        """Those with a value that is not finite, in the order in which they were written."""

    def at(self, step: int, attempt: int | None = None) -> Step | None:
        """The newest line about a step, of one attempt or of any."""

    def newest(self, count: int) -> list[Step]:
        """The last ones, the oldest first."""


def steps_of(run_dir: RunDir, state: RunState, rank: int, at: float | None) -> Steps:
    """Where the steps of a rank are looked up; what was written after `at` (unix seconds) is left out."""
    if state.by_logs:
        facts = read_run(run_dir).facts
        told = facts if at is None else known_at(facts, at)
        return _OfFacts([it for it in told if isinstance(it, Step)])
    paths = [path for of, path in run_dir.signal_files() if of == rank]
    paths.sort(key=_age, reverse=True)
    return _OfFiles(run_dir, rank, paths, math.inf if at is None else at)


def first_of_each(steps: Steps) -> list[BadStep]:
    """The first bad step of each attempt, by attempt."""
    found: dict[int, BadStep] = {}
    for it in steps.bad():
        if it.attempt not in found:
            found[it.attempt] = BadStep(it.attempt, it.step, it.t, position_of(it), it.source)
    return [found[attempt] for attempt in sorted(found)]


def position_of(step: Step | None) -> int | None:
    """How much data had been consumed when the step was done: samples, else tokens."""
    if step is None:
        return None
    value = next((step.values[name] for name in POSITION_FIELDS if name in step.values), None)
    return int(value) if value is not None and math.isfinite(value) else None


def unit_of(step: Step | None) -> str:
    """What its position counts."""
    return "tokens" if step and POSITION_FIELDS[0] not in step.values else "samples"


def _is_bad(step: Step) -> bool:
    loss = step.values.get("loss")
    return not math.isfinite(step.values.get("grad_norm", 0.0) if loss is None else loss)


class _OfFacts:
    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps

    def bad(self) -> Iterable[Step]:
        return (it for it in self._steps if _is_bad(it))

    def at(self, step: int, attempt: int | None = None) -> Step | None:
        found = (it for it in reversed(self._steps) if it.step == step and attempt in (None, it.attempt))
        return next(found, None)

    def newest(self, count: int) -> list[Step]:
        return self._steps[-count:]


class _OfFiles:
    def __init__(self, run_dir: RunDir, rank: int, paths: list[Path], until_t: float) -> None:
        self._run_dir, self._rank, self._until_t, self._paths = run_dir, rank, until_t, paths
        self._texts: list[tuple[str, bytes]] | None = None

    def bad(self) -> Iterable[Step]:
        return (it for it in self._found(re.compile(_BAD)) if _is_bad(it))

    def at(self, step: int, attempt: int | None = None) -> Step | None:
        told = self._found(re.compile(rb'"step": ?%d[,}]' % step))
        right = [it for it in told if it.step == step and attempt in (None, it.attempt)]
        return right[-1] if right else None

    def newest(self, count: int) -> list[Step]:
        if not self._paths:
            return []
        try:
            with RankFiles(self._paths) as files:
                end = files.whole_end()
                if math.isfinite(self._until_t):
                    end = min(end, files.end_before(AfterTime(self._until_t).is_beyond))
                begin = files.line_start(max(0, end - count * _LINE_BYTES))
                text = files.read(begin, end)
        except OSError:
            return []
        name = os.path.relpath(self._paths[-1], self._run_dir.path)
        told = (self._step(line, name) for line in text.splitlines()[-2 * count :])
        return [it for it in told if it is not None and it.t <= self._until_t][-count:]

    def _all(self) -> list[tuple[str, bytes]]:
        if self._texts is None:
            self._texts = [
                (os.path.relpath(path, self._run_dir.path), _content(path)) for path in self._paths
            ]
        return self._texts

    def _found(self, wanted: re.Pattern[bytes]) -> Iterator[Step]:
        for name, text in self._all():
            at, number, lines = 0, 1, 0
            for match in wanted.finditer(text):
                if match.start() < at:
                    continue
                begin = text.rfind(b"\n", 0, match.start()) + 1
                end = text.find(b"\n", match.end())
                end = len(text) if end < 0 else end
                number, at, lines = number + text.count(b"\n", at, begin), begin, lines + 1
                step = self._step(text[begin:end], f"{name}:{number}")
                at = end
                if step is not None and step.t <= self._until_t:
                    yield step
                if lines >= _MOST_LINES:
                    return

    def _step(self, line: bytes, source: str) -> Step | None:
        fact = SignalDecoder().decode(line, source, rank=self._rank)
        return fact if isinstance(fact, Step) else None


def _content(path: Path) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:
            return file.read(_LARGEST_FILE_BYTES)
    except OSError:
        return b""


def _age(path: Path) -> int:
    last = path.name.rpartition(".")[2]
    return int(last) if last.isdecimal() else 0
