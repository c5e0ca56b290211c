"""Which entries of a dump of active ones alone are over, although they never say so?

What a batch of sends and receives or a coalesced operation is made of stays "scheduled" for ever; its closing
entry carries the state, and is left out of such a dump once it is completed. So members without a closing
entry are over, unless they are the last that the rank recorded and, by its own count of what it issued, not
yet issued: then the batch is still open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from train_ledger.hang.dumps.entry import integer, is_p2p, is_pair, seq_of, text

__all__ = ["is_batching", "still_open"]

_Entries = list[dict[Any, Any]]
_Number = tuple[bool, int | None]
"""Whether it is a send or receive, and its number among these or among the collectives."""


def still_open(entries: _Entries, last: Mapping[Any, Any], status: Mapping[str, int]) -> _Entries:
    """Those of one group's entries that may be pending.

    `last` is the last entry that the rank recorded at all, `status` how far it is in each group by the id of
    that in its process.
    """
    numbers = [_number(entry) for entry in entries]
    parts = Counter(numbers)
    closed = {number for number, entry in zip(numbers, entries, strict=True) if _closes(entry)}
    if entries[-1] is last and not _is_issued(last, numbers[-1], status):
        closed.add(numbers[-1])
    batches = is_batching(entries)
    return [
        entry
        for number, entry in zip(numbers, entries, strict=True)
        if number in closed or not (parts[number] > 1 or (batches and number[0]))
    ]


def is_batching(entries: _Entries) -> bool:
    """Whether several sends and receives of a group have one number, or an entry that closes them."""
    p2p = [entry for entry in entries if is_p2p(entry) and "p2p_seq_id" in entry]
    return any(map(_closes, p2p)) or max(Counter(map(_number, p2p)).values(), default=0) > 1


def _is_issued(entry: Mapping[Any, Any], number: _Number, status: Mapping[str, int]) -> bool:
    count = status.get(text(entry.get("pg_id")))
    return count is not None and number[1] is not None and count >= number[1]


def _number(entry: Mapping[Any, Any]) -> _Number:
    if is_p2p(entry):
        return True, integer(entry.get("p2p_seq_id", entry.get("record_id")))
    return False, seq_of(entry)


def _closes(entry: Mapping[Any, Any]) -> bool:
    return not is_pair(entry) if is_p2p(entry) else "coalesced" in text(entry.get("profiling_name"))
