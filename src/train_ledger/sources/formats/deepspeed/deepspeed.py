"""What does DeepSpeed print as it trains?

`[Rank 0] step=N, skipped=K, lr=[…], mom=[…]` (the steps include the skipped ones), the samples per second
of its timer, the pipeline's `steps: N loss: …`, overflows, timers, checkpoints, the launcher's clean exits,
and DeepSpeed-Chat. A line's rank is that which DeepSpeed writes in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats.deepspeed.deepspeed_chat import ChatSteps
from train_ledger.sources.formats.deepspeed.deepspeed_overflow import Overflows
from train_ledger.sources.formats.deepspeed.deepspeed_timers import FIELDS_OF_TIMERS, TimerSteps
from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.pairs import bare_name, with_unit
from train_ledger.sources.formats.trainer_front import Front, is_source_code, read_front
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_number import log_number
from train_ledger.sources.lines.signal_name import signal_number

__all__ = ["DeepSpeed"]

_N = r"[-+]?\w[\w.+-]{0,40}"
_STEP = re.compile(
    rf"\bstep=(\d{{1,12}}), skipped=(\d{{1,12}}), lr=\[({_N})?([^\]]{{0,4000}})\]"
    rf"(?:, mom=[\[(]{{1,3}}({_N}))?"
)
_TIMER = re.compile(
    r"(?:\bepoch=\d{1,9}/micro_step=\d{1,12}/global_step=(\d{1,12})|\b\d{1,9}/(\d{1,12})),"
    r" (?=(?:Running|Curr)?(?:Avg)?SamplesPerSec=|vm %: )"
)
_PAIR = re.compile(rf"([A-Za-z][\w %]{{0,40}})(?:=|: )({_N})")
_PIPELINE = re.compile(r"steps: (\d{1,12}) (loss: .{1,2000})\biter time \(s\): (.{1,200})", re.DOTALL)
_LOSS = re.compile(rf"([A-Za-z][\w ]{{0,40}}): ({_N})(?:\s|\Z)")
_AFTER = re.compile(rf"({_N})(?: samples/sec: ({_N}))?")
_CHECKPOINT = re.compile(r"\[\w{1,40}\] Checkpoint (\w{1,80}) is (about to be saved!|ready now!)")
_GLOBAL_STEP = re.compile(r"global_step(\d{1,12})\Z")
_ENDED = re.compile(
    r"\bProcess (?P<done>\d{1,10}) exits successfully\.|\bKilling subprocess (?P<killed>\d{1,10})\s{0,4}\Z"
    r"|\bMain process received (?P<signal>SIG[A-Z]{2,8}), exiting"
)
_OF_ENDS = ("exits successfully.", "Killing subprocess ", "Main process received ")
_TIMER_NAMES = {
    "currsamplespersec": "samples_per_second",
    "runningavgsamplespersec": "samples_per_second_avg",
    "samplespersec": "samples_per_second_avg",
    "memallocated": "mem_allocated",
    "maxmemallocated": "mem_allocated_peak",
    "vm": "vm_percent",
    "swap": "swap_percent",
}


class DeepSpeed:
    """A `LineFormat`."""

    name: ClassVar[str] = "DeepSpeed"
    marks: ClassVar[tuple[bytes, ...]] = (
        b", skipped=",
        b"SamplesPerSec=",
        b", vm %: ",
        b"iter time (s): ",
        b"time (ms) |",
        b"] Checkpoint ",
        b" exits successfully.",
        b"Killing subprocess ",
        b"Main process received ",
        *Overflows.marks,
        *ChatSteps.marks,
    )
    knows: ClassVar[frozenset[str]] = FIELDS_OF_TIMERS | {
        "loss",
        "lr",
        "skipped",
        "step_time_s",
        "mem_allocated_peak",
    }

    def __init__(self) -> None:
        self._timers = TimerSteps()
        self._overflows = Overflows()
        self._chat = ChatSteps()
        self._step: int | None = None
        self._is_told_steps = False

    def read(self, line: LogLine, source: str) -> Iterator[Fact]:
        text = line.text
        if "time (ms) |" in text:
            yield from self._timers.facts(line, source)
        elif (match := _engine_line(text)) and not is_source_code(text[: match.start()]):
            yield from self._engine(match, line, source)
        elif (match := _timer_line(text)) and not is_source_code(text[: match.start()]):
            yield from self._throughput(match, line, source)
        elif (match := _pipeline_line(text)) and not is_source_code(text[: match.start()]):
            yield from self._pipeline(match, line, source)
        else:
            yield from self._others(line, source)

    def end(self) -> Iterator[Fact]:
        return self._timers.end()

    def _number(self, step: int, values: dict[str, float], front: Front, source: str) -> Iterator[Step]:
        """The step of an engine; within reinforcement learning, its values for the step under way."""
        if self._chat.is_on:
            values, step = {**values, "engine_step": float(step)}, self._chat.number + 1
        else:
            yield from self._timers.told(step)
        self._step = step
        yield Step(front.t, step, front.rank, 0, front.host, source, values)

    def _engine(self, match: re.Match[str], line: LogLine, source: str) -> Iterator[Fact]:
        """An engine's step; `step=0` comes when it is made, before a checkpoint is loaded, and is none."""
        values = {"skipped": float(match[2])}
        rates = [log_number(it) for it in (match[3] or "", *match[4].split(","))]
        known = [it for it in rates if it is not None]
        if known:
            values["lr"] = known[0]
        values |= {f"lr_{index}": it for index, it in enumerate(known[:32]) if it != known[0]}
        momentum = log_number(match[5] or "")
        if momentum is not None:
            values["mom"] = momentum
        front, step = read_front(line, line.text[: match.start()]), int(match[1])
        if step:
            self._is_told_steps = True
            yield from self._number(step, values, front, source)
        else:
            yield Event(front.t, "engine_start", front.rank, None, 0, front.host, source, dict(values))

    def _throughput(self, match: re.Match[str], line: LogLine, source: str) -> Iterator[Step]:
        """The timer's line; before 2022 it counts micro-batches, so it is of the last step that was told.

        Its own count is taken where nothing else tells steps.
        """
        values: dict[str, float] = {}
        for name, text in _PAIR.findall(line.text[match.end() :]):
            number = with_unit(text)
            if number is not None and isfinite(number):
                values[_TIMER_NAMES.get(bare_name(name), own_name(name))] = number
        front = _of_rank_0(read_front(line, line.text[: match.start()]))
        if self._chat.is_on or (match[1] is None and self._is_told_steps):
            step = self._chat.number + 1 if self._chat.is_on else self._step or 0
            yield Step(front.t, step, front.rank, 0, front.host, source, values)
        else:
            yield from self._number(int(match[1] or match[2]), values, front, source)

    def _pipeline(self, match: re.Match[str], line: LogLine, source: str) -> Iterator[Step]:
        """The pipeline's line; Megatron tells the same step in the next one, so no rank is read into it."""
        values = {
            own_name(name): number
            for name, text in _LOSS.findall(match[2])
            if (number := log_number(text)) is not None
        }
        after = _AFTER.match(match[3])
        for name, text in zip(
            ("step_time_s", "samples_per_second"), after.groups() if after else (), strict=False
        ):
            if text is not None and (number := log_number(text)) is not None:
                values[name] = number
        self._is_told_steps = True
        yield from self._number(int(match[1]), values, read_front(line, line.text[: match.start()]), source)

    def _others(self, line: LogLine, source: str) -> Iterator[Fact]:
        text = line.text
        if "] Checkpoint " in text and (match := _CHECKPOINT.search(text)):
            yield self._checkpoint(match, line, source)
        elif any(it in text for it in _OF_ENDS) and (match := _ENDED.search(text)):
            if not is_source_code(text[: match.start()]):
                yield _ended(match, read_front(line, text[: match.start()]), source)
        elif any(it in text for it in ("overflow", "OVERFLOW", "verflow detected", "dynamic loss scale")):
            yield from self._overflows.facts(line, source)
        elif self._chat.may_tell(text) and not is_source_code(text):
            yield from self._reinforced(line, source)

    def _reinforced(self, line: LogLine, source: str) -> Iterator[Step]:
        for values in self._chat.values(line.text):
            if values:
                front = _of_rank_0(read_front(line, ""))
                yield Step(front.t, self._chat.number, front.rank, 0, front.host, source, values)

    def _checkpoint(self, match: re.Match[str], line: LogLine, source: str) -> Event:
        front = read_front(line, line.text[: match.start()])
        step = _GLOBAL_STEP.match(match[1])
        saved = match[2].startswith("ready")
        details: dict[str, Any] = {"tag": match[1], **({"durable": True} if saved else {})}
        name = "ckpt_saved" if saved else "ckpt_start"
        return Event(
            front.t, name, front.rank, int(step[1]) if step else None, 0, front.host, source, details
        )


def _engine_line(text: str) -> re.Match[str] | None:
    return _STEP.search(text, text.find("step=")) if ", skipped=" in text and "step=" in text else None


def _timer_line(text: str) -> re.Match[str] | None:
    return _TIMER.search(text) if "SamplesPerSec=" in text or "vm %: " in text else None


def _pipeline_line(text: str) -> re.Match[str] | None:
    """The last `steps: ` before the time, since others may have written into the line before it."""
    until = text.find("iter time (s): ")
    start = text.rfind("steps: ", 0, until) if until >= 0 else -1
    return _PIPELINE.match(text, start) if start >= 0 else None


def _of_rank_0(front: Front) -> Front:
    """DeepSpeed's throughput and its examples are printed by rank 0 alone."""
    return front if front.rank is not None else replace(front, rank=0)


def _ended(match: re.Match[str], front: Front, source: str) -> Event:
    """A process of the launcher's ended, is ended because another one failed, or the launcher is stopped."""
    name = "process_end"
    about: dict[str, Any] = {"pid": int(match["done"] or 0), "code": 0}
    if match["killed"]:
        name, about = "signal_sent", {"pid": int(match["killed"]), "victim": True}
    elif match["signal"]:
        name, about = "signal", {"number": signal_number(match["signal"]), "of": "launcher"}
    return Event(front.t, name, None, None, 0, front.host, source, about)
