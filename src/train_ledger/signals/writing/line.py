"""What does one signal line look like?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from train_ledger.signals.harmless.values import detail, sound

__all__ = ["event_line", "step_line"]

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_HEAD = frozenset({"t", "step", "rank", "attempt", "event"})
_SURROGATE = r"\ud"


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
        body = _ENCODER.encode({key: detail(value) for key, value in fields.items()})
    if _SURROGATE in body:
        body = _ENCODER.encode({sound(key): detail(value) for key, value in fields.items()})
    comma = "," if fields else ""
    return f'{{"t":{t!r},"step":{step},"rank":{rank},"attempt":{attempt}{comma}{body[1:]}\n'.encode()


def event_line(
    t: float, step: int | None, event: str, details: Mapping[str, Any], rank: int, attempt: int
) -> bytes:
    """The line of an event, its newline included; `details` are as `values.detail` gives them.

    >>> event_line(2.0, None, "phase_start", {"phase": "compile"}, rank=5, attempt=0)
    b'{"t":2.0,"rank":5,"attempt":0,"event":"phase_start","phase":"compile"}\\n'
    """
    head: dict[str, Any] = {"t": t, "step": step, "rank": rank, "attempt": attempt, "event": event}
    if step is None:
        del head["step"]
    body = {key: value for key, value in details.items() if key not in _HEAD}
    return _ENCODER.encode({**head, **body}).encode() + b"\n"
