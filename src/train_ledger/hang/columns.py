"""Are all entries of a dump as the recorder of today writes them?

Nearly always they are, and then asking each of thousands (see `understood`) takes twice as long as loading
them. Here a whole column is looked at at a time, without a call for each entry. Whatever is not certain is a
no, upon which the entries are asked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from types import NoneType
from typing import Any

from train_ledger.hang.understood import MOST_OPERATIONS

__all__ = ["are_ordinary"]

Column = Sequence[Any]


def are_ordinary(entries: Sequence[Any]) -> bool:
    """Whether each of them is certainly understood."""
    if set(map(type, entries)) != {dict}:
        return False
    try:
        columns = zip(_KEYS, zip(*map(_ROW, entries), strict=True), strict=True)
        return all(_CHECKS[key](column) for key, column in columns)
    except (KeyError, TypeError):  # an older or a foreign writer; something within a tuple of names
        return False


def _types(values: Iterable[Any]) -> set[type]:
    return set(map(type, values))


def _are_words(column: Column) -> bool:
    return _types(column) == {str} and "" not in (words := set(column)) and all(map(str.isascii, words))


def _are_names(column: Column) -> bool:
    """(name, description) of a group; JSON has lists in place of pairs."""
    if not _types(column) <= {tuple, list}:
        return False
    return all(len(names) == 2 and _types(names) == {str} for names in set(map(tuple, column)))


def _are_counts(column: Column) -> bool:
    return _types(column) == {int} and min(column) >= 0 and max(column) < MOST_OPERATIONS


def _are_times(column: Column) -> bool:
    if not _types(column) <= {int, NoneType}:
        return False
    return _are_64_bits(list(filter(None, column)))


def _are_64_bits(numbers: Collection[int]) -> bool:
    return not numbers or (min(numbers) >= 0 and max(numbers) < 1 << 63)


def _are_flags(column: Column) -> bool:
    return _types(column) == {bool}


def _are_shapes(column: Column) -> bool:
    if _types(column) != {list}:
        return False
    shapes = list(chain.from_iterable(column))
    if not _types(shapes) <= {list}:
        return False
    dims = list(chain.from_iterable(shapes))
    return _types(dims) <= {int} and _are_64_bits(set(dims))


def _are_texts(column: Column) -> bool:
    return _types(column) == {list} and _types(chain.from_iterable(column)) <= {str}


_CHECKS: dict[str, Callable[[Column], bool]] = {
    "profiling_name": _are_words,
    "state": _are_words,
    "process_group": _are_names,
    "collective_seq_id": _are_counts,
    "p2p_seq_id": _are_counts,
    "record_id": _are_counts,
    "time_created_ns": _are_times,
    "time_discovered_completed_ns": _are_times,
    "retired": _are_flags,
    "is_p2p": _are_flags,
    "input_sizes": _are_shapes,
    "output_sizes": _are_shapes,
    "input_dtypes": _are_texts,
    "output_dtypes": _are_texts,
}
_KEYS = tuple(_CHECKS)
_ROW = itemgetter(*_KEYS)
