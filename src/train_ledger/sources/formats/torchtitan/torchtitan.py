"""What does torchtitan print on its way?

Lines of 2024 to 2026, with and without `[titan]`, of the root logger or a module's: steps, validations,
checkpoints, the start and the end. Some things in them are no values and are left out: the loss -1 of a
pipeline stage that has none (trainer.py; only the last stage, or rank 0 under ZBVZeroBubble, has it), MFU
that is N/A, and MFU after the warning that this GPU's peak is unknown and an A100's stands in for it.

The first line of a start – step 1 is always printed – counts the time since the process built its metrics
(metrics.py): its speeds contain loading and compiling and are marked by `with_start_up`; its time per step,
which divides that time by log_freq whatever number of steps ran, is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.torchtitan.torchtitan_notes import Note, note_in
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_number import log_number
from train_ledger.sources.lines.log_time import TIME, log_time

__all__ = ["Torchtitan"]

_STEP = re.compile(
    r"(?<![\w.])(validate )?step: {0,8}(\d{1,15})(?:/\d{1,15} = [\d.]{1,12}%)? {1,8}(?=[A-Za-z_])"
)
_FIELD = re.compile(r"([A-Za-z_][\w/.()%-]{0,39}): {0,16}(\S{1,40})")
_MEMORY = re.compile(r"(\d[\d,.]{0,15})GiB(?:\((\d[\d.]{0,9})%\))?\Z")
_HEADER = re.compile(rf"({TIME}) - [\w.]{{1,80}} - [A-Z]{{1,8}} - ")
_TIME = re.compile(TIME)
_LONGEST = 2000
_FRONT = 400
_MOST_RANKS = 1 << 17
_FIELDS = {
    "wps": "tps",
    "step_time": "step_time_s",
    "elapsed_time_per_step": "step_time_s",
    "num_alloc_retries": "num_alloc_retries",
    "num_ooms": "num_ooms",
}
_NO_LOSS = -1.0

_Whose = tuple[str | None, int | None]


@dataclass(slots=True)
class _Rank:
    """What is remembered of one rank: the step that it printed last, a save or a load that is open."""

    step: int = -1
    starts: bool = False
    saves: bool = False
    saving_step: int | None = None
    loading_step: int | None = None
    counters: dict[str, float] | None = None


class Torchtitan:
    """The lines that torchtitan logs to the terminal."""

    name: ClassVar[str] = "torchtitan"
    marks: ClassVar[tuple[bytes, ...]] = (
        b"step: ",
        b"the checkpoint",
        b"checkpoint completed",
        b" checkpoint at ",
        b"only checkpoint in ",
        b"raining starts at step",
        b"Training completed",
        b"Peak flops undefined",
        b"allocation retries",
        b"OOM errors thrown",
        b"Parallel loss is not visible",
        b"Ran out of data",
    )
    knows: ClassVar[frozenset[str]] = frozenset(
        {"loss", "grad_norm", "tps", "tflops", "mfu", "mem_reserved_peak"}
    )

    def __init__(self) -> None:
        self._ranks: dict[_Whose, _Rank] = {}
        self._peak_unknown = False

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        text = line.text[:_LONGEST]
        at = text.find("step:")
        match = _STEP.search(text, max(0, at - len("validate "))) if at >= 0 else None
        if match is not None:
            return self._measured(match, text, line, source)
        header = _HEADER.search(text[:_FRONT])
        note = note_in(text[header.end() :]) if header is not None else None
        if header is None or note is None:
            return ()
        return self._noted(note, _Told(line, _seconds(header[1], line), source))

    def end(self) -> Iterable[Fact]:
        return ()

    def _rank(self, line: LogLine) -> _Rank:
        if len(self._ranks) > _MOST_RANKS:
            self._ranks.clear()
        return self._ranks.setdefault((line.host, line.rank), _Rank())

    def _measured(self, match: re.Match[str], text: str, line: LogLine, source: str) -> Iterable[Fact]:
        values = _values(text[match.end() :])
        if "loss" not in values or not ("tps" in values or "mem_reserved_peak" in values):
            return ()
        if values["loss"] == _NO_LOSS:
            del values["loss"]
        if self._peak_unknown:
            values.pop("mfu", None)
        rank, step = self._rank(line), int(match[2])
        values.update(rank.counters or {})
        rank.counters = None
        time = _TIME.search(text[: min(match.start(), _FRONT)])
        told = _Told(line, _seconds(time[0], line) if time else _seconds("", line), source)
        if match[1]:
            return (told.event("eval_end", step, **values),)
        if step == 1 or rank.starts or step < rank.step:
            values.pop("step_time_s", None)
            values["with_start_up"] = 1.0
        rank.step, rank.starts = step, False
        return (Step(told.t, step, line.rank, 0, line.host, source, values),)

    def _noted(self, note: Note, told: _Told) -> Iterable[Fact]:
        rank = self._rank(told.line)
        if note.counter is not None:
            rank.counters = {**(rank.counters or {}), note.kind: note.counter}
            return ()
        if note.kind == "run_start":
            for other in self._ranks.values():
                other.starts = True
            return (told.event("run_start", first_step=note.step),)
        if note.kind == "warning":
            self._peak_unknown = self._peak_unknown or note.device is not None
            return (told.event("warning", message=note.message, device=note.device),)
        if note.kind == "run_end":
            return (told.event("run_end"),)
        return _of_checkpoint(note, rank, told)


@dataclass(frozen=True, slots=True)
class _Told:
    """A line, its time and its place: what every event of it shares."""

    line: LogLine
    t: float
    source: str

    def event(self, name: str, step: int | None = None, /, **details: Any) -> Event:
        """What goes into the details may have any name: some are the log's."""
        known = {key: value for key, value in details.items() if value is not None}
        return Event(self.t, name, self.line.rank, step, 0, self.line.host, self.source, known)


def _of_checkpoint(note: Note, rank: _Rank, told: _Told) -> Iterator[Event]:
    """A save tells its step only where it is the last one (2024: always); a load by the folder's name."""
    if note.kind == "ckpt_start":
        if not (note.is_last and rank.saves):  # else it has begun, and this line tells which step it is
            yield told.event("ckpt_start", note.step)
        rank.saves, rank.saving_step = True, note.step
    elif note.kind == "ckpt_saved":
        yield told.event("ckpt_saved", rank.saving_step, duration_s=note.duration_s, durable=note.durable)
        rank.saves, rank.saving_step = False, None
    elif note.kind == "loading":
        rank.loading_step = note.step
        yield told.event("phase_start", phase="checkpoint_load")
    else:
        yield told.event("phase_end", phase="checkpoint_load")
        yield told.event("ckpt_loaded", rank.loading_step, duration_s=note.duration_s)


def _seconds(time: str, line: LogLine) -> float:
    t = log_time(time)
    if t is None:
        t = line.t
    return math.nan if t is None else t


def _values(text: str) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, word in _FIELD.findall(text):
        if name == "memory":
            values.update(_memory(word))
            continue
        number = log_number(word.rstrip("%s"))
        known = _FIELDS.get(name) or own_name(name)
        if number is not None and known:
            values[known] = number
    return values


def _memory(word: str) -> dict[str, float]:
    """
    >>> _memory("40.00GiB(50.00%)"), _memory("?")
    ({'mem_reserved_peak': 42949672960.0, 'memory_percent': 50.0}, {})
    """
    match = _MEMORY.match(word)
    gib = log_number(match[1]) if match else None
    if match is None or gib is None:
        return {}
    percent = log_number(match[2]) if match[2] else None
    told = {"mem_reserved_peak": float(round(gib * (1 << 30)))}
    return told if percent is None else {**told, "memory_percent": percent}
