"""Whose lines stand in a signal file, and which of a rank's files is it?"""

from __future__ import annotations

import re

__all__ = ["place_of", "rank_in"]

_SIGNAL_FILE = re.compile(r"rank_(\d{1,9})\.jsonl(?:\.(\d{1,9}))?\Z", re.ASCII)


def place_of(name: str) -> tuple[int, int] | None:
    """(rank, age) of a signal file; None for another name.

    >>> place_of("rank_00005.jsonl.2") < place_of("rank_00005.jsonl")
    True
    """
    match = _SIGNAL_FILE.match(name)
    return (int(match[1]), -int(match[2] or 0)) if match else None


def rank_in(path: str) -> int:
    """The rank of a signal file at this path."""
    found = place_of(path.rpartition("/")[2])
    if found is None:
        raise AssertionError(f"{path} is followed without being a signal file")
    return found[0]
