"""What of a journal entry can be understood?

The journal is a file, and who wrote into it may not have been the keeper. A value of another kind than it is
meant to be is left out and counted, and the rest of its entry is still told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, get_args

from train_ledger.answer import Confidence, Diagnosis, Impact, RuledOut
from train_ledger.fields import read_number

__all__ = ["Taker", "moment"]

_LATEST_T = 1e11
_LARGEST = 1 << 62
_Value = TypeVar("_Value")


def moment(value: object) -> float | None:
    """Unix seconds of the years 1970 to 5138; None for anything else."""
    return _amount(value, _LATEST_T)


def _amount(value: object, largest: float = 1e18) -> float | None:
    number = None if isinstance(value, str) else read_number(value)
    return number if number is not None and 0 <= number < largest else None


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _LARGEST else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _ruled_out(value: object) -> RuledOut | None:
    if not isinstance(value, Mapping):
        return None
    cause, by = _text(value.get("cause")), _text(value.get("by"))
    return None if cause is None or by is None else RuledOut(cause, by)


def _confidence(value: object) -> Confidence | None:
    return cast(Confidence, value) if value in get_args(Confidence) else None


def _impact(value: object) -> Impact | None:
    if not isinstance(value, Mapping):
        return None
    wall_s, hours = _amount(value.get("wall_s")), _amount(value.get("gpu_hours"))
    if wall_s is None or (hours is None and value.get("gpu_hours") is not None):
        return None
    return Impact(wall_s, hours, _amount(value.get("cost")))


class Taker:
    """Takes values out of entries; `left_out` counts those that were there and not understood."""

    def __init__(self) -> None:
        self.left_out = 0

    def moment(self, entry: Mapping[str, Any]) -> float | None:
        """When it happened."""
        return self._one(entry, "t", moment)

    def diagnosis(self, entry: Mapping[str, Any]) -> Diagnosis | None:
        """The verdict that an entry holds; None where it holds none."""
        content = entry.get("diagnosis")
        if not isinstance(content, Mapping):
            self.left_out += 1
            return None
        return Diagnosis(
            state=self._one(content, "state", _text) or "",
            cause=self._one(content, "cause", _text) or "unknown",
            ranks=self._all(content, "ranks", _whole),
            hosts=self._all(content, "hosts", _text),
            confidence=self._one(content, "confidence", _confidence) or "low",
            since_step=self._one(content, "since_step", _whole),
            since_t=self._one(content, "since_t", moment),
            impact=self._one(content, "impact", _impact),
            evidence=self._all(content, "evidence", _text),
            ruled_out=self._all(content, "ruled_out", _ruled_out),
            not_observed=self._all(content, "not_observed", _text),
        )

    def _one(
        self, content: Mapping[str, Any], key: str, wanted: Callable[[object], _Value | None]
    ) -> _Value | None:
        value = content.get(key)
        found = None if value is None else wanted(value)
        self.left_out += value is not None and found is None
        return found

    def _all(
        self, content: Mapping[str, Any], key: str, wanted: Callable[[object], _Value | None]
    ) -> tuple[_Value, ...]:
        values = content.get(key) or []
        if not isinstance(values, list):
            self.left_out += 1
            return ()
        found = [wanted(value) for value in values]
        self.left_out += found.count(None)
        return tuple(it for it in found if it is not None)
