"""What does one signal line look like, and what may stand in it?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from train_ledger.fields import written_number

__all__ = ["detail", "event_line", "plain", "step_line"]

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_HEAD = frozenset({"t", "step", "rank", "attempt", "event"})


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


def step_line(t: float, step: int, fields: Mapping[str, float], rank: int, attempt: int) -> bytes:
    """The line of a step, its newline included; `fields` are plain numbers.

    >>> step_line(1.5, 41, {"loss": 2.25, "lr": float("nan")}, rank=5, attempt=0)
    b'{"t":1.5,"step":41,"rank":5,"attempt":0,"loss":2.25,"lr":"NaN"}\\n'
    """
    if not _HEAD.isdisjoint(fields):  # a field that is called `rank` cannot change whose line it is
        fields = {key: value for key, value in fields.items() if key not in _HEAD}
    try:
        body = _ENCODER.encode(fields)
    except ValueError:
        body = _ENCODER.encode({key: _written(value) for key, value in fields.items()})
    comma = "," if fields else ""
    return f'{{"t":{t!r},"step":{step},"rank":{rank},"attempt":{attempt}{comma}{body[1:]}\n'.encode()


def event_line(
    t: float, step: int | None, event: str, details: Mapping[str, object], rank: int, attempt: int
) -> bytes:
    """The line of an event, its newline included.

    >>> event_line(2.0, None, "phase_start", {"phase": "compile"}, rank=5, attempt=0)
    b'{"t":2.0,"rank":5,"attempt":0,"event":"phase_start","phase":"compile"}\\n'
    """
    head: dict[str, Any] = {"t": t, "step": step, "rank": rank, "attempt": attempt, "event": event}
    if step is None:
        del head["step"]
    body = {key: detail(value) for key, value in details.items() if key not in _HEAD}
    return _ENCODER.encode({**head, **body}).encode() + b"\n"


def detail(value: object) -> Any:
    """What an event may carry: numbers, words, lists or objects of them; of anything else its type's name.

    >>> detail({"dp": 2, "order": ("tp", "dp"), "loss": float("nan"), "dtype": object()})
    {'dp': 2, 'order': ['tp', 'dp'], 'loss': 'NaN', 'dtype': 'object'}
    """
    if value is None or isinstance(value, bool | str):
        return value
    number = plain(value)
    if number is not None:
        return _written(number)
    if isinstance(value, dict):
        return {str(key): detail(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [detail(item) for item in value]
    return type(value).__name__


def _written(value: float) -> float | str:
    """As JSON can hold it: readers hold floats, and Python prints no integer of thousands of digits."""
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf if value > 0 else -math.inf
    return value if math.isfinite(as_float) else written_number(as_float)
