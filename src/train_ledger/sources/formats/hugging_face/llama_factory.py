"""What does LLaMA-Factory's trainer_log.jsonl tell?

One JSON object a line, of a training's records and of the progress of evaluations and predictions, which
counts steps of its own. `elapsed_time` is in whole seconds since the session began; `throughput` has been
divided by all of it and stays under its own name.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import ClassVar

from train_ledger.facts import Event, Fact, Step
from train_ledger.fields import read_number
from train_ledger.sources.formats.hugging_face.hf_log import SessionRate
from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.signal_lines.jsonl import LARGEST_STEP

__all__ = ["LlamaFactory"]

_FIELDS = {"learning_rate": "lr", "lr": "lr", "loss": "loss", "total_tokens": "consumed_tokens"}
_NO_VALUES = frozenset({"current_steps", "total_steps", "percentage", "eval_loss", "predict_loss"})
_CLOCK = re.compile(r"(?:(\d{1,6}) days?, )?(\d{1,4}):(\d\d):(\d\d)\Z")
_RESOLUTION_S = 1.0
_MOST_VALUES = 256


class LlamaFactory:
    """An `OwnedFormat`."""

    name: ClassVar[str] = "LLaMA-Factory trainer_log.jsonl"
    marks: ClassVar[tuple[bytes, ...]] = ()
    knows: ClassVar[frozenset[str]] = frozenset({"loss", "lr", "step_time_s"})

    def __init__(self) -> None:
        self.damaged: Counter[str] = Counter()
        self._steps = SessionRate()

    @classmethod
    def fits(cls, head: bytes, file_name: str) -> bool:
        return head.startswith(b'{"current_steps": ') and b'"total_steps": ' in head

    def read(self, line: LogLine, source: str) -> Iterator[Fact]:
        record = _record(line.text)
        step = read_number(record.get("current_steps")) if record is not None else None
        if record is None or step is None or not 0 <= step <= LARGEST_STEP:
            if line.text.strip():
                self.damaged["no record of LLaMA-Factory's"] += 1
            return
        if (loss := read_number(record.get("eval_loss"))) is not None:
            yield Event(math.nan, "eval_end", None, int(step), source=source, details={"eval_loss": loss})
        if read_number(record.get("loss")) is not None:
            values = _values(record) | self._pace(step, record.get("elapsed_time"))
            yield Step(math.nan, int(step), None, source=source, values=values)

    def end(self) -> Iterator[Fact]:
        return iter(())

    def _pace(self, step: float, elapsed: object) -> dict[str, float]:
        clock = _CLOCK.match(elapsed) if isinstance(elapsed, str) else None
        if clock is None:
            return {}
        days, hours, minutes, seconds = (int(it or 0) for it in clock.groups())
        per_s = self._steps.add(step, ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds, _RESOLUTION_S)
        return {"step_time_s": 1.0 / per_s} if per_s else {}


def _record(text: str) -> Mapping[str, object] | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _values(record: Mapping[str, object]) -> dict[str, float]:
    return {
        name: number
        for key, value in list(record.items())[:_MOST_VALUES]
        if key not in _NO_VALUES
        and (number := read_number(value)) is not None
        and (name := _FIELDS.get(key) or own_name(key))
    }
