"""What do nanoGPT and its kin (llm.c, llama2.c, build-nanogpt, modded-nanogpt, nanochat, torchtune) print?

Short lines of a shape of their own, which are read whole or not at all: some of these logs begin with the
program's source, where such lines stand as text. Steps count from 0 in some and from 1 in others, and are
given as printed. `train_time` runs on, so a step's time is its difference within the attempt. nanoGPT prints
an MFU of -100 % until it knows it, modded-nanogpt a step_avg of nan; tokens per second are of all GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isnan
from typing import ClassVar

from train_ledger.facts import Fact, Step
from train_ledger.sources.formats.nanogpt.nanogpt_pieces import values_of_pieces
from train_ledger.sources.formats.trainer_front import after_front, read_front
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_number import log_number

__all__ = ["NanoGpt"]

_N = r"[-+]?(?:\d[\d.]{0,30}(?:[eE][-+]?\d{1,4})?|nan|inf)"
_END = r"\s{0,8}\Z"
_ITER = re.compile(
    rf"[Ii]ter (\d{{1,12}})(?:/\d{{1,12}})?: (loss {_N}(?:, [\w .:%/()+-]{{1,60}}){{0,8}}){_END}"
)
_ESTIMATE = re.compile(rf"step (\d{{1,12}}): train loss ({_N}), val loss ({_N}){_END}")
_TOOK = re.compile(rf"step (\d{{1,12}})(?:/\d{{1,12}})?: train loss ({_N}) \(took ({_N}) ms\){_END}")
_OF_LLAMA2_C = re.compile(rf"(\d{{1,12}}) \| (loss {_N} \|.{{1,200}})\Z")
_OF_TORCHTUNE = re.compile(rf"Step (\d{{1,12}}) \| ((?:[a-z_]{{2,40}}:{_N} ?){{2,16}}){_END}")
_COLUMNS = re.compile(r"(\d{1,12}) (train|val|hella) (\d{1,4}\.\d{4,6}|nan|inf)\s{0,8}\Z")
_VAL = re.compile(rf"val loss ({_N}){_END}")
_SHORT = re.compile(rf"s:(\d{{1,12}})((?: [a-z]{{2,8}}:{_N}){{1,8}}){_END}")
_MODDED = re.compile(rf"step:(\d{{1,12}})/\d{{1,12}}((?: [a-z_]{{2,24}}:{_N}m?s?){{1,16}}){_END}")
_BEGINS = ("iter ", "Iter ", "step", "Step", "s:", "val loss ")
"""Lines begin with one of these, or with a number."""
_PAIR = re.compile(rf"([a-z_]{{2,24}}):({_N})(m?s?)")
_BARS = re.compile(
    r"[Ss]tep:? {1,8}(\d{1,12})(?:/\d{1,12})?(?: \([\d.]{1,10}%\))? {0,4}\|(.{1,4000})\Z", re.DOTALL
)
_SHORT_NAMES = {"trl": "loss", "tel": "val_loss", "norm": "grad_norm", "lr": "lr"}
_COLUMN_NAMES = {"train": "loss", "val": "val_loss", "hella": "hella"}
_MODDED_NAMES = {"train_loss": "loss", "loss": "loss", "lr": "lr", "grad_norm": "grad_norm"}


class NanoGpt:
    """A `LineFormat`."""

    name: ClassVar[str] = "nanoGPT"
    marks: ClassVar[tuple[bytes, ...]] = (
        b": loss ",
        b" train_time:",
        b" val_loss:",
        b" trl:",
        b" tel:",
        b" eval:",
        b"train loss ",
        b"val loss ",
        b"loss: ",
        b"| loss ",
        b"| loss:",
        b"| train_loss ",
        b" train ",
        b" val ",
        b" hella ",
        b"Loss: ",
        b"| Validation ",
    )
    knows: ClassVar[frozenset[str]] = frozenset({"loss", "step_time_s", "mfu", "lr", "grad_norm"})

    def __init__(self) -> None:
        self._step = 0
        self._clock: tuple[int, float] | None = None

    def read(self, line: LogLine, source: str) -> Iterator[Fact]:
        start = after_front(line.text)
        told = self._told(line.text[start:]) if _may_be(line.text, start) else None
        if told is not None and told[1]:
            self._step, values = told
            front = read_front(line, line.text[:start])
            yield Step(front.t, self._step, front.rank, 0, front.host, source, values)

    def end(self) -> Iterator[Fact]:
        return iter(())

    @classmethod
    def takes(cls, text: str) -> bool:
        """Whether a trainer's words, without what stands before them, are a step's line of this format."""
        told = cls()._told(text) if _may_be(text, 0) else None
        return told is not None and bool(told[1])

    def _told(self, text: str) -> tuple[int, dict[str, float]] | None:
        """Step and values of a line; None for a line of another shape."""
        if match := _ITER.match(text):
            return int(match[1]), values_of_pieces(match[2].split(","))
        if match := _SHORT.match(text):
            pairs = _PAIR.findall(match[2])
            return int(match[1]), _known(**{_SHORT_NAMES.get(name, name): it for name, it, _ in pairs})
        if match := _MODDED.match(text):
            return self._modded(int(match[1]), _PAIR.findall(match[2]))
        if match := _OF_TORCHTUNE.match(text):
            return int(match[1]), values_of_pieces(match[2].split())
        if match := _BARS.match(text):
            return int(match[1]), values_of_pieces(match[2].split("|"))
        if match := _OF_LLAMA2_C.match(text):
            return int(match[1]), values_of_pieces(match[2].split("|"))
        if match := _ESTIMATE.match(text):
            return int(match[1]), _known(train_loss=match[2], val_loss=match[3])
        if match := _TOOK.match(text):
            return int(match[1]), _known(loss=match[2], step_time_ms=match[3])
        if match := _COLUMNS.match(text):
            return int(match[1]), _known(**{_COLUMN_NAMES[match[2]]: match[3]})
        match = _VAL.match(text)
        return (self._step, _known(val_loss=match[1])) if match else None

    def _modded(self, step: int, pairs: list[tuple[str, str, str]]) -> tuple[int, dict[str, float]]:
        values: dict[str, float] = {}
        for name, text, unit in pairs:
            number = log_number(text)
            if number is None or (name == "step_avg" and isnan(number)):
                continue
            field = _MODDED_NAMES.get(name, f"{name}_s" if unit else name)
            values[field] = number / 1e3 if unit == "ms" else number
        clock = values.get("train_time_s")
        if clock is not None:
            if self._clock is not None and step > self._clock[0] and clock >= self._clock[1]:
                values["step_time_s"] = round((clock - self._clock[1]) / (step - self._clock[0]), 6)
            if self._clock is None or step != self._clock[0]:
                self._clock = (step, clock)
        return step, values


def _may_be(text: str, start: int) -> bool:
    """Whether a line of one of the shapes may begin at `start`."""
    return text.startswith(_BEGINS, start) or text[start : start + 1].isdecimal()


def _known(**texts: str | None) -> dict[str, float]:
    """The numbers among these, times in seconds; an MFU below 0 is none."""
    values: dict[str, float] = {}
    for name, text in texts.items():
        number = log_number(text) if text is not None else None
        if number is None or (name == "mfu" and number < 0):
            continue
        values[name.replace("_ms", "_s")] = number / 1e3 if name.endswith("_ms") else number
    return values
