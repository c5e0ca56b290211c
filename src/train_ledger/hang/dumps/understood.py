"""Can a Flight Recorder dump, and each entry of it, be understood?

A value that makes no sense is not replaced by a likely one: the entry is left out as a whole, and counted,
for an operation that is only not understood must not look like one that a rank did not issue.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

from train_ledger.hang.dumps.entry import integer, is_p2p

__all__ = ["MOST_OPERATIONS", "dump_in", "is_understood"]

MOST_OPERATIONS = 1 << 40
"""At a thousand collectives a second it takes 34 years to get there."""


def dump_in(content: Any) -> tuple[dict[Any, Any], list[Any]] | None:
    """The dump and its entries in what a file held; None where that is no dump at all."""
    if isinstance(content, list):  # 1.0 was the bare list of entries
        content = {"entries": content} if content else None
    if not isinstance(content, dict) or not ({"entries", "pg_config", "version"} & content.keys()):
        return None
    entries = content.get("entries", [])
    return (content, entries) if isinstance(entries, list) else None


def is_understood(entry: Any) -> bool:
    """Whether it says which operation of which group it is, how far that is, and nothing that cannot be."""
    return (
        type(entry) is dict
        and _is_word(entry.get("profiling_name"))
        and _is_word(entry.get("state"))
        and _names_a_group(entry)
        and _is_count(_number(entry))
        and _is_count(entry.get("record_id", 0))
        and _is_time(entry.get("time_created_ns"))
        and _is_time(entry.get("time_discovered_completed_ns"))
        and type(entry.get("retired")) in _FLAG
        and type(entry.get("is_p2p")) in _FLAG
        and _are_tensors_understood(entry)
    )


def _are_tensors_understood(entry: Mapping[Any, Any]) -> bool:
    return (
        _are_shapes(entry.get("input_sizes"))
        and _are_shapes(entry.get("output_sizes"))
        and _are_texts(entry.get("input_dtypes"))
        and _are_texts(entry.get("output_dtypes"))
    )


_FLAG = (bool, NoneType)


def _number(entry: Mapping[Any, Any]) -> Any:
    """The one that counts for it: sends and receives have their own."""
    if is_p2p(entry) and "p2p_seq_id" in entry:
        return entry["p2p_seq_id"]
    return entry.get("collective_seq_id", entry.get("seq_id"))


def _is_count(value: Any) -> bool:
    number = value if type(value) is int else integer(value)
    return number is not None and 0 <= number < MOST_OPERATIONS


def _is_time(value: Any) -> bool:
    return value is None or ((number := integer(value)) is not None and number >= 0)


def _is_word(value: Any) -> bool:
    return type(value) is str and value != "" and value.isascii()


def _names_a_group(entry: Mapping[Any, Any]) -> bool:
    """By name and description; before 1.4 by its id alone."""
    listed = entry.get("process_group")
    if isinstance(listed, list | tuple):
        return len(listed) == 2 and type(listed[0]) is type(listed[1]) is str
    return type(listed) is str or (listed is None and type(entry.get("pg_id", 0)) in (int, str))


def _are_shapes(value: Any) -> bool:
    if type(value) not in _LIST:
        return value is None
    for shape in value:
        if type(shape) not in _LIST:
            return False
        for dim in shape:
            if type(dim) is not int or not 0 <= dim < 1 << 63:
                return False
    return True


def _are_texts(value: Any) -> bool:
    return value is None or (type(value) in _LIST and set(map(type, value)) <= _TEXT)


_LIST = (list, tuple)
_TEXT = {str}
