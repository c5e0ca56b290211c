"""What does trainer_state.json tell, the Hugging Face Trainer's own record beside each checkpoint?

It is one JSON object with bare NaN in it; `log_history` holds the records of all sessions of the run, the
repeated steps of a resumed one not among them. It tells neither times nor ranks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from train_ledger.facts import Fact
from train_ledger.sources.formats.hugging_face.hf_log import KNOWS, Reported, SessionRate, numbers_of
from train_ledger.sources.signal_lines.jsonl import LARGEST_STEP

__all__ = ["TrainerState"]


class TrainerState:
    """trainer_state.json as a whole."""

    name: ClassVar[str] = "Hugging Face trainer_state.json"
    knows: ClassVar[frozenset[str]] = KNOWS - {"step_time_s"}

    def fits(self, head: bytes, file_name: str) -> bool:
        if not head.lstrip().startswith(b"{"):
            return False
        keyed = b'"log_history"' in head or (b'"global_step"' in head and b'"best_metric"' in head)
        return keyed or file_name.endswith("trainer_state.json")

    def facts(self, content: bytes, source: str) -> Iterable[Fact]:
        """All records; `source` goes on with the record's place in `log_history`."""
        state = _state(content, source)
        history = state.get("log_history")
        if not isinstance(history, list):
            raise ValueError(f"{source}: has no list log_history; is this a trainer_state.json?")
        return self._records(history, source)

    def _records(self, history: list[Any], source: str) -> Iterator[Fact]:
        rate = SessionRate()
        for index, record in enumerate(history):
            if not isinstance(record, dict):
                continue
            numbers = numbers_of(record)
            step = numbers.pop("step", None)
            whole = int(step) if step is not None and 0 <= step <= LARGEST_STEP else None
            speed = _speed(rate, numbers)
            place = f"{source}:log_history[{index}]"
            yield from Reported(numbers, whole, source=place, tokens_per_second=speed).facts()


def _state(content: bytes, source: str) -> dict[str, Any]:
    try:
        state = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"{source}: is no whole JSON ({problem}); was it still being written?") from None
    if not isinstance(state, dict):
        raise ValueError(f"{source}: holds no JSON object; is this a trainer_state.json?")
    return state


def _speed(rate: SessionRate, numbers: dict[str, float]) -> float | None:
    tokens, seconds = numbers.get("num_input_tokens_seen"), numbers.get("train_runtime")
    return rate.add(tokens, seconds) if tokens is not None and seconds is not None else None
