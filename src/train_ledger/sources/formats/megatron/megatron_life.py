"""What else happens in a run of Megatron's: starts, checkpoints, evaluations, ends?"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.pairs import bare_name, numbers_of, pairs_in
from train_ledger.sources.formats.trainer_front import is_source_code

__all__ = [
    "FIELDS_OF_MEMORY",
    "LIFE_MARKS",
    "Happened",
    "Memory",
    "Validated",
    "happened",
    "memory_in",
    "validated",
]

LIFE_MARKS = (
    b"checkpoint at iteration",
    b"checkpoint from",
    b"] datetime: ",
    b"exiting program ",
    b"using world size: ",
)
FIELDS_OF_MEMORY = frozenset({"mem_allocated_peak", "mem_reserved_peak"})


@dataclass(frozen=True, slots=True)
class Happened:
    """One event: `name` is one of `fields.EVENTS`; `at` is where it begins in the line."""

    name: str
    at: int
    step: int | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Validated:
    """The result of an evaluation; `step` is None where the line names no iteration."""

    at: int
    which: str
    step: int | None
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Memory:
    """What one rank has allocated after `step`, in bytes; `rank` is global, None where none is named."""

    step: int
    rank: int | None
    values: dict[str, float]


def _saving(match: re.Match[str]) -> Happened:
    return Happened("ckpt_start", match.start(), int(match[1]), _path(match[2]))


def _saved(match: re.Match[str]) -> Happened:
    return Happened("ckpt_saved", match.start(), int(match[1]), {**_path(match[2]), "durable": True})


def _loaded(match: re.Match[str]) -> Happened:
    return Happened("ckpt_loaded", match.start(), int(match[2]), _path(match[1]))


def _exiting(match: re.Match[str]) -> Happened:
    step = re.search(r"iteration (\d{1,12})", match[0])
    return Happened(
        "run_end", match.start(), int(step[1]) if step else None, {"reason": match[1].strip(" .")}
    )


def _world(match: re.Match[str]) -> Happened:
    return Happened("run_start", match.start(), None, {"world_size": int(match[1])})


def _begun(match: re.Match[str]) -> Happened:
    return Happened("phase_end", match.start(), None, {"phase": "start_up"})


def _done(match: re.Match[str]) -> Happened:
    return Happened("run_end", match.start(), None, {"reason": "training is done"})


def _path(text: str | None) -> dict[str, Any]:
    return {"path": text} if text else {}


_EVENTS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], Happened]], ...] = (
    (
        "saving checkpoint",
        re.compile(r"(?<!\w)saving checkpoint at iteration {1,8}(\d{1,12})(?: to (\S{1,4096}))?"),
        _saving,
    ),
    (
        "successfully saved",
        re.compile(
            r"successfully saved checkpoint (?:from|at) iteration {1,8}(\d{1,12})(?: to (\S{1,4096}))?"
        ),
        _saved,
    ),
    (
        "successfully loaded",
        re.compile(
            r"successfully loaded checkpoint from {1,2}(\S{1,4096})"
            r"(?: \[ t \d{1,6}/\d{1,6}, p \d{1,6}/\d{1,6} \])? at iteration {1,8}(\d{1,12})"
        ),
        _loaded,
    ),
    (
        "exiting program",
        re.compile(r"exiting program ((?:at|after) [^\]'\"{}]{1,80}?)(?:\] datetime: |\s{0,4}\Z)"),
        _exiting,
    ),
    ("training step]", re.compile(r"\[before the start of training step\] datetime: "), _begun),
    ("training is done]", re.compile(r"\[after training is done\] datetime: "), _done),
    ("using world size", re.compile(r"using world size: (\d{1,7}), data-parallel[- ]size: \d"), _world),
)
_VALIDATION = re.compile(r"\b(validation|valid|test) (?:loss|results) at ([^|]{1,160})\|(.*)", re.DOTALL)
_AT = re.compile(r"(?:iteration (\d{1,12})|the end of training)\s{0,4}(.{0,120})", re.DOTALL)
_SET = re.compile(r"(?:on |for |\[)([\w./ -]{1,80}?)(?: set| data|\]|\s{0,4}\Z)")
_KINDS = {"validation": "val", "valid": "val", "val": "val", "test": "test"}
_MEMORY = re.compile(r"(?:\[Rank (\d{1,7})\] )?\(?after (\d{1,12}) iterations\)? memory \((MB|GB)\) \|")
_MOST_REPORTS = 64
_MEMORY_NAMES = {"maxallocated": "mem_allocated_peak", "maxreserved": "mem_reserved_peak"}


def happened(text: str) -> Happened | None:
    """The event that the line tells, if it is one and no program's source.

    >>> happened("  successfully saved checkpoint from iteration     120 to /ckpt [ t 1/1, p 1/1 ]").step
    120
    """
    for mark, pattern, event in _EVENTS:
        if mark in text and (match := pattern.search(text)) and not is_source_code(text[: match.start()]):
            return event(match)
    return None


def validated(text: str) -> Validated | None:
    """The result of an evaluation that the line tells; its values begin with `val` or `test`.

    >>> validated(" validation loss at iteration 50 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |").values
    {'val_loss': 2.5, 'val_ppl': 12.0}
    """
    match = _VALIDATION.search(text)
    at = _AT.match(match[2]) if match else None
    if match is None or at is None or is_source_code(text[: match.start()]):
        return None
    named = _SET.search(at[2])
    which = own_name(named[1]) if named else match[1]
    stem = _KINDS.get(which, f"val_{which}")
    values = {
        f"{stem}_{_result(part)}": number
        for name, value in pairs_in(match[3].split("|"))
        for part, number in numbers_of(name, value)
    }
    return Validated(match.start(), which, int(at[1]) if at[1] else None, values) if values else None


def _result(name: str) -> str:
    own = own_name(name).removesuffix("_value")
    for loss in ("lm_loss", "loss"):
        own = "loss" if own == loss else own.removeprefix(f"{loss}_") if own == f"{loss}_ppl" else own
    return "ppl" if own == "lm_ppl" else own


def memory_in(text: str) -> Iterator[Memory]:
    """What ranks have allocated, by their reports after the first iterations; one line may hold several.

    >>> (found,) = memory_in("[Rank 3] (after 2 iterations) memory (MB) | reserved: 1.0 | max reserved: 2.5")
    >>> found.rank, found.step, found.values
    (3, 2, {'mem_reserved': 1048576.0, 'mem_reserved_peak': 2621440.0})
    """
    starts = list(itertools.islice(_MEMORY.finditer(text), _MOST_REPORTS))
    ends = [*(it.start() for it in starts[1:]), len(text)]
    for match, end in zip(starts, ends, strict=False):
        scale = 2.0**20 if match[3] == "MB" else 2.0**30
        values = {
            _MEMORY_NAMES.get(bare_name(part), f"mem_{own_name(part)}"): number * scale
            for name, value in pairs_in(text[match.end() : end].split("|"))
            for part, number in numbers_of(name, value)
        }
        if values:
            yield Memory(int(match[2]), int(match[1]) if match[1] else None, values)
