"""Are all entries of a dump as the recorder of today writes them?

Nearly always they are, and then asking each of thousands one value after the other (see `understood`) takes
twice as long as loading them. Here they are held against a schema, all at once. Whatever does not fit is a
no, upon which the entries are asked one by one. Sizes and types of tensors are not looked at: of thousands of
operations those of a few are kept, and these are asked themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter, itemgetter
from typing import Annotated, Any

import msgspec

from train_ledger.hang.dumps.understood import MOST_OPERATIONS

__all__ = ["are_ordinary", "are_words"]

_Count = Annotated[int, msgspec.Meta(ge=0, lt=MOST_OPERATIONS)]
_Int64 = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Entry(msgspec.Struct, gc=False):
    """What `understood` asks of an entry but for its tensors; further keys are nobody's business."""

    profiling_name: str
    state: str
    process_group: tuple[str, str]
    collective_seq_id: _Count
    p2p_seq_id: _Count = 0
    record_id: _Count = 0
    time_created_ns: _Int64 | None = None
    time_discovered_completed_ns: _Int64 | None = None
    retired: bool | None = None
    is_p2p: bool | None = None


def are_ordinary(entries: Sequence[Any]) -> bool:
    """Whether each of them is certainly understood, where its tensors are."""
    try:
        rows = msgspec.convert(entries, list[_Entry])
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for keys that are no text
        return False
    if not {*map(type, map(itemgetter("process_group"), entries))} <= {tuple, list}:
        return False  # a set would do for the schema
    return are_words({*map(attrgetter("profiling_name"), rows), *map(attrgetter("state"), rows)})


def are_words(texts: Collection[Any]) -> bool:
    """Whether each is text, not empty, of plain letters."""
    return all(type(text) is str and text != "" and text.isascii() for text in texts)
