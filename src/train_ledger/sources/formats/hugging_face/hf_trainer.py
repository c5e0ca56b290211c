"""What does the Hugging Face Trainer print on its way?

Its records tell an epoch and no step. The step stands in the bar that tqdm draws anew right behind a record:
that bar was moved on before the record was printed, while the one in front of it may lag (it is drawn at most
ten times a second). Where no bar follows – only stdout was kept, or bars are off – the record is an event
`metrics` without a step: to count records times logging_steps would invent one after a resume, and an epoch
is rounded to four digits. Bars alone tell steps, too, once it is known which of them is the training's: by
the line `Total optimization steps` or by a record that it followed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from train_ledger.facts import Event, Fact
from train_ledger.sources.formats.hugging_face.hf_line import parts
from train_ledger.sources.formats.hugging_face.hf_log import KNOWS
from train_ledger.sources.formats.hugging_face.hf_session import Session, Where
from train_ledger.sources.formats.hugging_face.hf_summary import Summary, heading
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_time import TIME, log_time

__all__ = ["HfTrainer"]

_TIME = re.compile(TIME)
_RUNNING = re.compile(r"(?:^|>> |\] | - {1,3})\*{5} Running (training|Evaluation|Prediction) \*{5}\s*\Z")
_TOTAL = re.compile(r"(?:^|>>|\]| -) {1,8}Total optimization steps = (\d[\d,]{0,15})\s*\Z")
_SAVING = re.compile(r"(?:^|>> |\] | - {1,3})Saving model checkpoint to (\S{1,1000})\s*\Z")
_CHECKPOINT = re.compile(r"checkpoint-(\d{1,15})/?\Z")
_LONGEST = 1 << 20
_LONGEST_MESSAGE = 2000
_MOST_SESSIONS = 1 << 14

_Whose = tuple[str | None, int | None]


class HfTrainer:
    """Records, bars, evaluations, saves and the summary of transformers' Trainer and those built on it."""

    name: ClassVar[str] = "Hugging Face Trainer"
    marks: ClassVar[tuple[bytes, ...]] = (
        b"'epoch': ",
        b"it/s",
        b"s/it",
        b"***** ",
        b"Total optimization steps",
        b"Saving model checkpoint to",
    )
    knows: ClassVar[frozenset[str]] = KNOWS

    def __init__(self) -> None:
        self._sessions: dict[_Whose, Session] = {}
        self._summaries: dict[_Whose, tuple[Summary, Where]] = {}
        self._waiting: set[_Whose] = set()
        self._total: int | None = None

    @property
    def wants_more(self) -> bool:
        """While a record waits for its bar, or a summary for its next line."""
        return bool(self._summaries or self._waiting)

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        for text in line.text[:_LONGEST].split("\r"):
            if text and not text.isspace():
                yield from self._piece(text, line, source)

    def _piece(self, text: str, line: LogLine, source: str) -> Iterator[Fact]:
        whose = (line.host, line.rank)
        where = Where(_seconds(text, line), line.rank, line.host, source)
        yield from self._summed(whose, text)
        session = self._session(whose)
        for part in parts(text):
            if not isinstance(part, str):
                yield from session.read(part, where)
                self._total = session.total
                continue
            yield from session.pass_over()
            if len(part) <= _LONGEST_MESSAGE:
                yield from self._message(part, whose, where)
        if session.waits:
            self._waiting.add(whose)
        else:
            self._waiting.discard(whose)

    def _session(self, whose: _Whose) -> Session:
        if len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.clear()
            self._waiting.clear()
        session = self._sessions.setdefault(whose, Session())
        session.total = self._total
        return session

    def _summed(self, whose: _Whose, text: str) -> Iterator[Fact]:
        summary, where = self._summaries.get(whose, (None, None))
        if summary is None or where is None or summary.add(text):
            return
        del self._summaries[whose]
        yield _of_summary(summary, where)

    def _message(self, text: str, whose: _Whose, where: Where) -> Iterator[Fact]:
        split = heading(text)
        if split is not None:
            if len(self._summaries) < _MOST_SESSIONS:
                self._summaries[whose] = (Summary(split), where)
        elif match := _RUNNING.search(text):
            session = self._sessions[whose]
            if match[1] == "training":  # scripts of others print this line, too
                session.begin(where.t)
            else:
                session.pause()
                yield where.event("eval_start", None)
        elif match := _TOTAL.search(text):
            self._total = int(match[1].replace(",", ""))
            yield where.event("run_start", None, steps=self._total)
        elif match := _SAVING.search(text):
            step = _CHECKPOINT.search(match[1])
            yield from self._sessions[whose].save(int(step[1]) if step else None, match[1], where)

    def end(self) -> Iterable[Fact]:
        for session in self._sessions.values():
            yield from session.pass_over()
        for summary, where in self._summaries.values():
            yield _of_summary(summary, where)
        self._summaries = {}


def _of_summary(summary: Summary, where: Where) -> Event:
    name = "run_end" if summary.split == "train" else "eval_end"
    return where.event(name, None, **{**summary.numbers, "split": summary.split})


def _seconds(text: str, line: LogLine) -> float:
    """The time in front of a logged message; records and bars tell none."""
    match = _TIME.search(text[:200])
    t = log_time(match[0]) if match else None
    if t is None:
        t = line.t
    return math.nan if t is None else t
