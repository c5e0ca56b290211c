"""What does one signal line look like, and what may stand in it?

>>> encode(Entry(1.5, 41, {"loss": 2.25, "lr": float("nan")}), rank=5, attempt=0)
b'{"t":1.5,"step":41,"rank":5,"attempt":0,"loss":2.25,"lr":"NaN"}\\n'
>>> encode(Entry(2.0, None, {"phase": "compile"}, event="phase_start"), rank=5, attempt=0)
b'{"t":2.0,"rank":5,"attempt":0,"event":"phase_start","phase":"compile"}\\n'
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from train_ledger.fields import written_number

__all__ = ["Entry", "detail", "encode", "plain"]

_INT_LIMIT = 2**63


class Entry(NamedTuple):
    """One line before it is written; `event` is None for a step line. A tuple, quick to make."""

    t: float
    step: int | None
    fields: Mapping[str, Any]
    event: str | None = None


def plain(value: object) -> float | int | None:
    """`value` where it is a plain number, else None.

    A tensor is never asked for its number, since that waits for the GPU. Booleans are no numbers, as for a
    reader. A subclass of float or int – numpy's float64 is one – is taken by its base, so that no foreign
    `__float__` runs.

    >>> plain(2), plain(0.5), plain(True), plain("2"), plain(None)
    (2, 0.5, None, None, None)
    """
    kind = type(value)
    if kind is float or kind is int:
        return value  # type: ignore[return-value]
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int) and kind is not bool:
        return int.__index__(value)
    return None


def encode(entry: Entry, rank: int, attempt: int) -> bytes:
    """The whole line, its newline included; non-finite numbers as the words that fields.py names."""
    head: dict[str, Any] = {"t": entry.t, "step": entry.step, "rank": rank, "attempt": attempt}
    if entry.step is None:
        del head["step"]
    if entry.event is not None:
        head["event"] = entry.event
        body = {key: detail(value) for key, value in entry.fields.items()}
    else:
        body = {key: _number(value) for key, value in entry.fields.items() if key != "event"}
    # The head stands first and wins: a field that is called `rank` cannot change whose line it is.
    return _ENCODER.encode({**head, **body, **head}).encode() + b"\n"


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def _number(value: float) -> float | str:
    if type(value) is int:
        # A reader holds numbers as floats, and Python refuses to print integers of thousands of digits.
        return value if -_INT_LIMIT < value < _INT_LIMIT else written_number(_as_float(value))
    return value if math.isfinite(value) else written_number(value)


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def detail(value: object) -> Any:
    """What an event may carry: numbers, words, lists or objects of them; of anything else its type's name.

    >>> detail({"dp": 2, "order": ("tp", "dp"), "loss": float("nan"), "dtype": object()})
    {'dp': 2, 'order': ['tp', 'dp'], 'loss': 'NaN', 'dtype': 'object'}
    """
    if value is None or isinstance(value, bool | str):
        return value
    number = plain(value)
    if number is not None:
        return _number(number)
    if isinstance(value, Mapping):
        return {str(key): detail(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [detail(item) for item in value]
    return type(value).__name__
