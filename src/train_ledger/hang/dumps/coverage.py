"""What does it mean that an entry is not in a dump?

Either it never was; or it is over, where a dump holds active entries alone; or it fell off the ring, or was
dropped when the recorder was reset. Record ids tell: they count all entries of the process, from 0 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from train_ledger.hang.dumps.entry import backend_of, integer, is_completed, is_p2p, seq_of, text

__all__ = ["coverage"]

RING_MINIMUM = 1000
"""A run of pending entries this long without a gap is a full ring, not a dump of active entries alone."""

_Entries = list[dict[Any, Any]]


_Counts = Mapping[str, int]


def coverage(
    entries: _Entries, groups: Iterable[_Entries], enqueued: _Counts, completed: _Counts
) -> tuple[bool, bool]:
    """(active entries alone, older ones are lost); gives the entries new ids where these begin anew.

    `enqueued` and `completed` are the recorder's own counts, by the id of the group.
    """
    if not entries:
        return True, False
    first, last = (integer(entry.get("record_id")) for entry in (entries[0], entries[-1]))
    if first is None or last is None:
        return False, True
    nothing_done = not any(is_completed(entry) or entry.get("retired") is True for entry in entries)
    if _begins_anew(entries, first, last, nothing_done):
        for record, entry in enumerate(entries):
            entry["record_id"] = record
        return False, True
    has_gaps = last - first + 1 > len(entries)
    active_only = nothing_done and (
        has_gaps
        or (first > 0 and len(entries) < RING_MINIMUM and not _lacks_pending(entries, enqueued, completed))
    )
    return active_only, not active_only and (first > 0 or (not nothing_done and _was_reset(groups)))


def _lacks_pending(entries: _Entries, enqueued: _Counts, completed: _Counts) -> bool:
    """Whether a group did not complete what comes before its entries: a dump of active ones would hold that.

    Where nothing at all was counted as completed it may not be counted. gloo counts what is not recorded,
    too, and a group with sends and receives counts these.
    """
    if backend_of(entries[-1]) == "gloo" or max(completed.values(), default=-1) < 0:
        return False
    lowest: dict[str, int] = {}
    for entry in entries:
        seq = None if is_p2p(entry) else seq_of(entry)
        lowest.setdefault(text(entry.get("pg_id")), -1 if seq is None else seq)
    return any(
        lowest.get(group, enqueued[group] + 1) > max(done, 0) + 1
        for group, done in completed.items()
        if enqueued.get(group, done) > done
    )


def _begins_anew(entries: _Entries, first: int, last: int, nothing_done: bool) -> bool:
    """Whether the recorder was reset between two entries; ids of a dump of active ones have gaps."""
    if last - first + 1 < len(entries):
        return True
    if not nothing_done:
        return False
    records = [integer(entry.get("record_id")) or 0 for entry in entries]
    return any(after <= before for before, after in pairwise(records))


def _was_reset(groups: Iterable[_Entries]) -> bool:
    """Whether no group begins at its beginning although the first record does."""
    firsts = [None if is_p2p(of_group[0]) else seq_of(of_group[0]) for of_group in groups]
    return bool(firsts) and all(first is not None and first > 1 for first in firsts)
