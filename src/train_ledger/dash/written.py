"""Is a value in the journal of the kind that it must be?

The journal is a file, and who wrote into it may not have been the keeper: a number where a text is meant, or
a time in no century, must be found out where it is read, not where it is drawn or added up.
"""

from __future__ import annotations

from collections.abc import Mapping

from train_ledger.fields import read_number

__all__ = ["LATEST_T", "labels", "moment", "number", "text", "whole"]

_FIRST_T, LATEST_T = -6e10, 1e11
"""Seconds: the years 68 and 5138."""
_LARGEST = 1 << 53


def text(value: object) -> str:
    """Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is no text")
    return value


def number(value: object) -> float:
    """One that is finite or told as a word; raises ValueError for anything else."""
    found = read_number(value)
    if found is None:
        raise ValueError(f"{type(value).__name__} is no number")
    return found


def moment(value: object) -> float:
    """Unix seconds; raises ValueError for what no clock tells."""
    t = number(value)
    if not _FIRST_T < t < LATEST_T:
        raise ValueError(f"{t:g} is no time")
    return t


def whole(value: object) -> int:
    """A count; raises TypeError for anything else."""
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise TypeError(f"{type(value).__name__} is no count")
    return value


def labels(value: object) -> dict[str, str]:
    """Names and what they are; raises TypeError for anything else."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} are no labels")
    return {text(name): text(told) for name, told in value.items()}
