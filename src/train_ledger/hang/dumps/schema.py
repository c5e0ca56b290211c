"""Are all entries of a dump as the recorder of today writes them?

Nearly always they are, and then asking each of thousands one value after the other (see `understood`) takes
twice as long as loading them. Here they are held against a schema, all at once. Whatever does not fit is a
no, upon which the entries are asked one by one. Sizes and types of tensors are not looked at: of thousands of
operations those of a few are kept, and these are asked themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec

from train_ledger.hang.dumps.understood import MOST_OPERATIONS

__all__ = ["Row", "ordinary_rows"]

_Count = Annotated[int, msgspec.Meta(ge=0, lt=MOST_OPERATIONS)]
_Int64 = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Row(msgspec.Struct, gc=False):
    """What `understood` asks of an entry but for its tensors; further keys are nobody's business."""

    profiling_name: str
    state: str
    process_group: Any
    collective_seq_id: _Count
    p2p_seq_id: _Count = 0
    record_id: _Count = 0
    time_created_ns: _Int64 | None = None
    time_discovered_completed_ns: _Int64 | None = None
    retired: bool | None = None
    is_p2p: bool | None = None


def ordinary_rows(entries: Sequence[Any]) -> list[Row] | None:
    """What is asked of each entry, where each is certainly understood if its tensors are; else None."""
    try:
        rows = msgspec.convert(entries, list[Row])
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for keys that are no text
        return None
    words = {*map(attrgetter("profiling_name"), rows), *map(attrgetter("state"), rows)}
    if "" in words or not all(map(str.isascii, words)) or not _name_groups(rows):
        return None
    return rows


def _name_groups(rows: Sequence[Row]) -> bool:
    """By name and description; as lists, which JSON makes of them, they are made pairs again."""
    names = [row.process_group for row in rows]
    if list in {*map(type, names)}:
        for row in rows:
            row.process_group = (
                tuple(row.process_group) if type(row.process_group) is list else row.process_group
            )
        names = [row.process_group for row in rows]
    try:
        return all(type(name) is tuple and [*map(type, name)] == [str, str] for name in {*names})
    except TypeError:  # a set or a dictionary
        return False
