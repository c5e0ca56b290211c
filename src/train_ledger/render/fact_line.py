"""How is a fact written for a script?"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from train_ledger.facts import Event, Fact, Step
from train_ledger.fields import written_number
from train_ledger.render.whole_text import whole_text

__all__ = ["OF_EVERY_FACT", "fact_line"]

OF_EVERY_FACT = frozenset({"kind", "event", "fault", "t", "step", "rank", "host", "attempt", "source"})
"""Keys that are written whatever a fact tells."""

_DEEPEST = 32
"""Lists within lists of hostile signal lines would end the reader's own stack."""


def fact_line(fact: Fact, fields: Collection[str] | None = None) -> str:
    """One JSON object on one line, of ASCII alone: the keys of every fact first, then what it tells.

    A time that is not known is null, a number that is not finite a word, as in signal lines. Of what it tells
    only `fields` are written where they are given; what goes by the name of a key of every fact gets a `_`.

    >>> fact_line(Step(math.nan, 7, None, source="a.log:3", values={"loss": math.inf}))
    '{"kind":"step","t":null,"step":7,"rank":null,"host":null,"attempt":0,"source":"a.log:3","loss":"Infinity"}'
    """
    told = fact.values if isinstance(fact, Step) else fact.details
    plain = _keys(fact)
    for name, value in told.items():
        if fields is None or name in fields:
            plain[f"{whole_text(name)}_" if name in plain else whole_text(name)] = _plain(value)
    return json.dumps(plain, separators=(",", ":"), allow_nan=False)


def _keys(fact: Fact) -> dict[str, Any]:
    named: dict[str, Any] = {"kind": "step"}
    if isinstance(fact, Event):
        named = {"kind": "event", "event": whole_text(fact.name)}
    elif not isinstance(fact, Step):
        named = {"kind": "fault", "fault": fact.fault}
    t = fact.t if fact.t is not None and math.isfinite(fact.t) else None
    return {
        **named,
        "t": t,
        "step": fact.step,
        "rank": fact.rank,
        "host": None if fact.host is None else whole_text(fact.host),
        "attempt": fact.attempt,
        "source": whole_text(fact.source),
    }


def _plain(value: Any, depth: int = 0) -> Any:
    if isinstance(value, float):
        return written_number(value)
    if isinstance(value, Mapping | list | tuple | set | frozenset) and depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {whole_text(str(key)): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth + 1) for item in value]
    return value if value is None or isinstance(value, int) else whole_text(str(value))
