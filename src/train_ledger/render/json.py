"""How is an answer written for a script?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from train_ledger.answer import SCHEMA, Diagnosis, HangAnswer, to_json
from train_ledger.render.whole_text import whole_text

__all__ = ["as_json"]


def as_json(answer: HangAnswer | Diagnosis | Mapping[str, Any], *, indent: int | None = 1) -> str:
    """The answer as one JSON object, keys in the order of the contract, `schema` first.

    Numbers that JSON has no word for are the strings "NaN", "Infinity" and "-Infinity", as in signal lines.
    Half a pair of UTF-16, which strict readers refuse, is the replacement character. All is ASCII: nothing in
    it can reach a terminal as a control sequence. `indent` None: on one line.
    """
    plain = {"schema": SCHEMA, **answer} if isinstance(answer, Mapping) else to_json(answer)
    return json.dumps(_valid(plain), indent=indent, allow_nan=False)


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {_valid(str(key)): _valid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(item) for item in value]
    return value
