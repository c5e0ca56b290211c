"""Which entries of an ordinary dump decide what is said of it?

Of each group what is pending, the last few, and the first, which tells whether anything older can be missing.
To look at the thousands of others again and again costs more than to load them: they are many small objects,
and a processor waits for each. So of all of them what tells this is taken once, column by column, and these
few alone are gone through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter, lt
from types import NoneType
from typing import Any

from train_ledger.hang.dumps.entry import COMPLETED_IS_DONE, text
from train_ledger.hang.dumps.held import KEPT_LAST, Key
from train_ledger.hang.dumps.schema import are_ordinary, are_words
from train_ledger.hang.dumps.understood import MOST_OPERATIONS

__all__ = ["essentials"]

_Entries = list[dict[Any, Any]]
_MOST_GROUPS = 1024


_Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Columns:
    """What is asked of every entry, each as long as there are entries; `places` are those of each group."""

    places: Mapping[_Group, list[int]]
    numbers: Sequence[int]
    states: Sequence[str]
    calls: Collection[str]
    p2p: Sequence[bool | None]
    ends: Sequence[int | None]

    def are_understood(self) -> bool:
        numbers = {*map(type, self.numbers)} == {int}
        return (
            numbers
            and min(self.numbers) >= 0
            and max(self.numbers) < MOST_OPERATIONS
            and {*map(type, self.p2p)} <= {bool, NoneType}
            and {*map(type, self.ends)} <= {int, NoneType}
            and are_words({*self.states, *self.calls})
            and all(type(name) is tuple and [*map(type, name)] == [str, str] for name in self.places)
        )


_OF_EACH = itemgetter(
    "process_group",
    "collective_seq_id",
    "state",
    "profiling_name",
    "is_p2p",
    "time_discovered_completed_ns",
)


def essentials(entries: Sequence[Any]) -> dict[Key, _Entries] | None:
    """The entries that count, by group, so that `hold` says of them what it says of all.

    None where that is not certain: for what is not understood, several backends, those that do not tell when
    an operation completed, groups without end, and where none is over, so that each counts. What the others
    say is not looked at.
    """
    columns = _columns(entries)
    if columns is None or not _tell_their_end(columns) or not _has_ended(columns):
        return None
    if len(columns.places) > _MOST_GROUPS:
        return None
    groups: dict[Key, _Entries] = {}
    for (name, desc), at in columns.places.items():
        few = _essential(at, columns)
        groups[text(name), text(desc), ""] = [entries[place] for place in few or at]
        if not are_ordinary(groups[text(name), text(desc), ""]):
            return None
    return groups if len(groups) == len(columns.places) else None


def _columns(entries: Sequence[Any]) -> _Columns | None:
    try:
        groups, numbers, states, calls, p2p, ends = zip(*map(_OF_EACH, entries), strict=True)
        if {*map(type, groups)} == {list}:  # as JSON has them
            groups = tuple(map(tuple, groups))
        places: dict[_Group, list[int]] = defaultdict(list)
        for place, name in enumerate(groups):
            places[name].append(place)
        columns = _Columns(places, numbers, states, {*calls}, p2p, ends)
        return columns if columns.are_understood() else None
    except (LookupError, TypeError, ValueError):  # keys that are not there, no dictionary, no entry at all
        return None


def _tell_their_end(columns: _Columns) -> bool:
    backends = {call.partition(":")[0] for call in columns.calls}
    return len(backends) == 1 and backends <= _TELLING


_TELLING = frozenset(COMPLETED_IS_DONE)


def _has_ended(columns: _Columns) -> bool:
    return "completed" in columns.states or any(columns.ends)


def _essential(at: list[int], columns: _Columns) -> list[int] | None:
    """None of a group with sends and receives, or whose numbers do not rise one by one: all of them count."""
    mine = _at(at)
    numbers = mine(columns.numbers)
    if not all(map(lt, numbers, numbers[1:])) or {*mine(columns.p2p)} != {False}:
        return None
    ends = columns.ends
    pending = [n for n, state in enumerate(mine(columns.states)) if state != "completed" and not ends[at[n]]]
    last = range(max(0, len(at) - KEPT_LAST - len(pending)), len(at))
    return [at[n] for n in sorted({0, *pending, *last})]


def _at(places: list[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What picks these places out of a column; quicker than one by one."""
    return itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
