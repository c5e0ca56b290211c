"""Which entries of an ordinary dump decide what is said of it?

Of each group what is pending, the last few, and the first, which tells whether anything older can be missing.
To look at the thousands of others again and again costs more than to load them: they are many small objects,
and a processor waits for each. So they are looked at once, as rows, and these alone are gone through.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, lt
from typing import Any

from train_ledger.hang.dumps.entry import COMPLETED_IS_DONE, text
from train_ledger.hang.dumps.held import KEPT_LAST, Key
from train_ledger.hang.dumps.schema import Row

__all__ = ["essentials"]

_Entries = list[dict[Any, Any]]
_MOST_GROUPS = 1024


def essentials(entries: _Entries, rows: Sequence[Row]) -> dict[Key, _Entries] | None:
    """The entries that count, by group, so that `hold` says of them what it says of all.

    None where that is not certain: for several backends, those that do not tell when an operation completed,
    and groups without end.
    """
    backends = {name.partition(":")[0] for name in {row.profiling_name for row in rows}}
    if len(backends) != 1 or not backends <= _TELLING:
        return None
    names = [row.process_group for row in rows]
    places: dict[tuple[str, str], list[int]] = {name: [] for name in dict.fromkeys(names)}
    if len(places) > _MOST_GROUPS:
        return None
    for place, name in enumerate(names):
        places[name].append(place)
    groups = {
        (text(name), text(desc), ""): [entries[place] for place in _essential(at, rows)]
        for (name, desc), at in places.items()
    }
    return groups if len(groups) == len(places) else None


_TELLING = frozenset(COMPLETED_IS_DONE)


def _essential(at: list[int], rows: Sequence[Row]) -> list[int]:
    """All of a group with sends and receives, or whose numbers do not rise one by one."""
    of_group = [rows[place] for place in at]
    numbers = [*map(attrgetter("collective_seq_id"), of_group)]
    if not all(map(lt, numbers, numbers[1:])) or {*map(attrgetter("is_p2p"), of_group)} != {False}:
        return at
    pending = [
        n
        for n, row in enumerate(of_group)
        if row.state != "completed" and not row.time_discovered_completed_ns
    ]
    last = range(max(0, len(at) - KEPT_LAST - len(pending)), len(at))
    return [at[n] for n in sorted({0, *pending, *last})]
