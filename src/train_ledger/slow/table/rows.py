"""What does one rank tell, line by line, and what stood between its steps?

Millions of lines are decoded, so in C and only by the fields that are needed; whatever the struct refuses is
left to `SignalDecoder`, which takes it or counts it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from train_ledger.facts import Event, Step
from train_ledger.fields import LARGEST_ATTEMPT
from train_ledger.slow.table.identities import identity_in
from train_ledger.slow.table.step_table import Flags, Floats, Ints
from train_ledger.sources import SignalDecoder
from train_ledger.sources.signal_lines.jsonl import LARGEST_STEP

__all__ = [
    "CHECKPOINT",
    "EVALUATION",
    "FIELDS",
    "RESTART",
    "RankRows",
    "is_wanted",
    "joined",
    "rows_of_lines",
    "stood_before",
]

FIELDS = (
    "step_time_s", "compute_s", "comm_wait_s", "data_wait_s", "fwd_s", "bwd_s", "opt_s", "gc_s", "log_s",
    "ckpt_s", "cpu_percent", "rss_bytes", "stdout_bytes", "mem_inactive_split", "mem_allocated_peak",
    "mem_reserved_peak", "num_alloc_retries", "num_device_alloc", "num_device_free", "queue_depth", "mfu",
    "tps", "tokens", "tokens_squared",
)  # fmt: skip
"""The fields that a table holds; tokens and tokens_squared are told by the training script alone."""

_OF_LOGS = re.compile(
    r"(?:span_[\w.-]{1,80}|\w{1,80}_min|traced)_s|estimated_tflops|gpu_(?:clock_mhz|temperature_c|power_w)"
)
CHECKPOINT, EVALUATION, RESTART = 1, 2, 4
_STOOD = {
    "ckpt_start": CHECKPOINT,
    "eval_start": EVALUATION,
    "eval_end": EVALUATION,
    "run_start": RESTART,
}
_PHASES = {"checkpoint_save": CHECKPOINT, "evaluation": EVALUATION, "checkpoint_load": RESTART}
_NAN = float("nan")


class _Place(msgspec.Struct, gc=False):
    t: float
    step: Annotated[int, Meta(ge=0, le=LARGEST_STEP)] | None = None
    attempt: Annotated[int, Meta(ge=0, le=LARGEST_ATTEMPT)] = 0
    event: str = ""
    phase: str = ""


_Line: type[_Place] = msgspec.defstruct(  # type: ignore[assignment]  # a _Place, by its bases
    "_Line", [(name, float | None, None) for name in FIELDS], bases=(_Place,), gc=False
)
_decode_all = msgspec.json.Decoder(_Line).decode_lines
_decode_one = msgspec.json.Decoder(_Line).decode


@dataclass(frozen=True, slots=True)
class RankRows:
    """Steps in the order in which a rank told them, over all attempts that were read.

    `stood` has the flags of what stood between a step and the one before it; `from_start` says that nothing
    stands before the first of them.
    """

    rank: int
    attempt: Ints
    step: Ints
    t: Floats
    values: Mapping[str, Floats]
    stood: Ints
    identity: Mapping[str, Any] = field(default_factory=dict)
    damaged: Mapping[str, int] = field(default_factory=Counter)

    from_start: bool = False

    def __len__(self) -> int:
        return len(self.step)

    def of(self, wanted: slice | Flags) -> RankRows:
        """Some of the rows."""
        return replace(
            self,
            attempt=self.attempt[wanted],
            step=self.step[wanted],
            t=self.t[wanted],
            values={name: told[wanted] for name, told in self.values.items()},
            stood=self.stood[wanted],
        )


def is_wanted(name: str) -> bool:
    """Whether a value of this name belongs into a table."""
    return name in FIELDS or _OF_LOGS.fullmatch(name) is not None


def stood_before(name: str, phase: object) -> int:
    """The flag of an event, 0 where it says nothing of the step that it stands in.

    >>> stood_before("phase_end", "evaluation") == EVALUATION, stood_before("ckpt_saved", None)
    (True, 0)
    """
    if name in ("phase_start", "phase_end"):
        return _PHASES.get(str(phase), 0)
    return _STOOD.get(name, 0)


def rows_of_lines(data: bytes, rank: int) -> RankRows:
    """The rows of whole lines of one rank's file."""
    damaged: Counter[str] = Counter()
    try:
        lines = _decode_all(data)
    except (msgspec.DecodeError, RecursionError):
        lines = _one_by_one(data, rank, damaged)
    steps, stood, flags = [], [], 0
    for line in lines:
        if line.event:
            flags |= stood_before(line.event, line.phase)
        elif line.step is None:
            damaged["missing_field"] += 1
        else:
            steps.append(line)
            stood.append(flags)
            flags = 0
    return RankRows(
        rank,
        _whole(steps, "attempt"),
        _whole(steps, "step"),
        _column(steps, "t"),
        {name: _column(steps, name) for name in FIELDS if b'"%s"' % name.encode() in data},
        np.array(stood, dtype=np.int64),
        identity_in(data, rank),
        damaged,
    )


def _whole(lines: Sequence[Any], name: str) -> Ints:
    return np.fromiter(map(attrgetter(name), lines), dtype=np.int64, count=len(lines))


def _column(lines: Sequence[Any], name: str) -> Floats:
    return np.array(list(map(attrgetter(name), lines)), dtype=np.float64)


def _one_by_one(data: bytes, rank: int, damaged: Counter[str]) -> list[_Place]:
    """What the struct does not take, the slow decoder takes or counts."""
    lines = []
    decoder = SignalDecoder()
    for text in data.split(b"\n"):
        line: _Place | None
        try:
            line = _decode_one(text)
        except (msgspec.DecodeError, RecursionError):
            line = _line_of(decoder.decode(text, rank=rank))
        if line is not None:
            lines.append(line)
    damaged.update(decoder.bad_lines)
    return lines


def _line_of(fact: Step | Event | None) -> _Place | None:
    if fact is None:
        return None
    if isinstance(fact, Event):
        phase = fact.details.get("phase")
        return _Line(fact.t, fact.step, fact.attempt, fact.name, phase if isinstance(phase, str) else "")
    line = _Line(fact.t, fact.step, fact.attempt)
    for name in fact.values.keys() & set(FIELDS):
        setattr(line, name, fact.values[name])
    return line


def joined(older: RankRows, newer: RankRows) -> RankRows:
    """Rows that stand one after the other in a file."""
    names = older.values.keys() | newer.values.keys()
    return RankRows(
        newer.rank,
        np.concatenate((older.attempt, newer.attempt)),
        np.concatenate((older.step, newer.step)),
        np.concatenate((older.t, newer.t)),
        {name: np.concatenate((_told(older, name), _told(newer, name))) for name in names},
        np.concatenate((older.stood, newer.stood)),
        newer.identity or older.identity,
        Counter(older.damaged) + Counter(newer.damaged),
    )


def _told(rows: RankRows, name: str) -> Floats:
    told = rows.values.get(name)
    return np.full(len(rows), _NAN) if told is None else told
