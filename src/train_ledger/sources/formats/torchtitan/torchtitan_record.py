"""What is one record of torchtitan's structured log, taken as it comes?

The writer dumps JSON with bare NaN, a name may be null and a time may be missing; what has another type than
it should is as if it were missing.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from train_ledger.fields import LARGEST_WORLD_SIZE, read_number
from train_ledger.sources.signal_lines.jsonl import LARGEST_STEP, LATEST_T

__all__ = ["Record", "read_record"]

_LONGEST_NAME = 80
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


class Record(msgspec.Struct, gc=False):
    """The keys that are read, of whatever type they have in the file."""

    log_type: Any = None
    log_type_name: Any = None
    event_name: Any = None
    value: Any = None
    step: Any = None
    relative_step: Any = None
    step_tags: Any = None
    rank: Any = None
    global_rank: Any = None
    source: Any = None
    host_name: Any = None
    pid: Any = None
    tid: Any = None
    task_name: Any = None
    time: Any = None
    time_ms: Any = None
    time_us: Any = None
    seq_id: Any = None
    message: Any = None

    @property
    def kind(self) -> str:
        """`fwd_bwd_start`, `metric_value`, …; empty where it is null."""
        return self.log_type_name[:_LONGEST_NAME] if isinstance(self.log_type_name, str) else ""

    @property
    def number(self) -> float | None:
        return read_number(self.value)

    @property
    def whose(self) -> tuple[str, int | None]:
        """The mesh that wrote it and its rank in there: trainer and generators of an RL job both have a 0."""
        rank = _whole(self.global_rank, LARGEST_WORLD_SIZE)
        if rank is None:
            rank = _whole(self.rank, LARGEST_WORLD_SIZE)
        return self.source[:_LONGEST_NAME] if isinstance(self.source, str) else "", rank

    @property
    def at_step(self) -> int | None:
        return _whole(self.step, LARGEST_STEP)

    @property
    def since_resume(self) -> int | None:
        return _whole(self.relative_step, LARGEST_STEP)

    @property
    def t(self) -> float:
        """Unix seconds, nan where no key tells a time."""
        for value, per_s in ((self.time_us, 1e6), (self.time_ms, 1e3), (self.time, 1.0)):
            number = read_number(value)
            if number is not None and 0.0 < number / per_s < LATEST_T:
                return number / per_s
        return math.nan

    @property
    def tags(self) -> tuple[str, ...]:
        """What is special about its step: `gc`, `eval`, `checkpoint_save`."""
        tags = self.step_tags if isinstance(self.step_tags, list) else ()
        return tuple(tag for tag in tags[:8] if isinstance(tag, str))


def _whole(value: object, largest: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= largest else None


_decode = msgspec.json.Decoder(Record).decode
_KEYS = frozenset(Record.__struct_fields__)


def read_record(text: str) -> Record | None:
    """The record of one line; None for a line that is no JSON object (a last line that was torn).

    >>> read_record('{"log_type_name": "metric_value", "event_name": "loss", "value": NaN, "step": 3}').number
    nan
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return _lenient(text)


def _lenient(text: str) -> Record | None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    return Record(**{key: _whole_text(value) for key, value in line.items() if key in _KEYS})


def _whole_text(value: object) -> object:
    """Half a pair of UTF-16 could neither be shown nor kept."""
    return _HALF_A_PAIR.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value
