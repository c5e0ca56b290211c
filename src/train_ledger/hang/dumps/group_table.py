"""Which process groups does a dump list, with which ranks, and how far are they?

Both tables come from an untrusted file, and everything later costs time and memory by the member: a rank
that cannot be, or more members than any job has, is not taken over, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from train_ledger.hang.dumps.entry import integer, text
from train_ledger.hang.dumps.understood import MOST_OPERATIONS

__all__ = [
    "MOST_RANKS",
    "ascending",
    "completed_by_id",
    "enqueued_by_name",
    "group_status",
    "group_table",
    "listed_ranks",
    "ranks_in",
]

MOST_RANKS = 1 << 20
"""More ranks than any job has, and more members than its groups have together; what is beyond is damage."""
_MOST_GROUPS = 1 << 16
_LONG_NUMBER = re.compile(r"\d{7}")
_LIST = re.compile(r"[\d\s,]*")
_DIGITS = re.compile(r"\d+")

Table = dict[str, tuple[str, str]]
"""Group name → (description, listed ranks as text)."""


def group_table(raw: Any) -> tuple[Table, str | None]:
    """The table, from any of the shapes the versions have used, and what was not taken over, in words."""
    table: Table = {}
    if raw is None:
        return table, None
    if not isinstance(raw, dict):
        return table, "the table of groups is not understood"
    members = odd = 0
    for name, value in raw.items():
        desc, ranks = (
            (text(value.get("desc")), value.get("ranks", "")) if isinstance(value, dict) else ("", value)
        )
        listed = listed_ranks(ranks)
        if listed is None or len(table) >= _MOST_GROUPS:
            odd += 1
            continue
        members += listed.count(",") + 1
        table[text(name)] = (desc, listed)
        if members > MOST_RANKS:
            return {}, f"its groups list more than {MOST_RANKS} members together: refused"
    return table, f"{odd} of {len(raw)} listed groups not understood" if odd else None


def group_status(raw: Any) -> tuple[dict[str, int], str | None]:
    """Group id → highest number that was enqueued; and what of it is not understood, in words."""
    if not isinstance(raw, dict):
        return {}, None if raw is None else "the status of groups is not understood"
    understood = _counts(raw, "last_enqueued_collective")
    odd = len(raw) - len(understood)
    return understood, f"the status of {odd} of {len(raw)} groups is not understood" if odd else None


def completed_by_id(raw: Any) -> dict[str, int]:
    """Group id → highest number that was completed, -1 for none; without what is not understood."""
    return _counts(raw, "last_completed_collective") if isinstance(raw, dict) else {}


def _counts(raw: Mapping[Any, Any], key: str) -> dict[str, int]:
    counts = {text(name): integer(value.get(key)) for name, value in raw.items() if isinstance(value, dict)}
    return {name: count for name, count in counts.items() if count is not None and count < MOST_OPERATIONS}


def enqueued_by_name(status: Mapping[str, int], table: Table, ids: Mapping[str, str]) -> dict[str, int]:
    """Name of a group → what was enqueued there; ids of groups count in their own process alone.

    `ids` are those that entries tell, by name. The others follow from the order: groups are numbered as they
    are made, and so are their names. Where that does not agree with what entries tell, it is not relied on.
    """
    told = {name: status[number] for name, number in ids.items() if number in status}
    if "0" in status and "0" not in ids.values():
        told.setdefault("0", status["0"])  # the first group of every process
    if len(table) != len(status) or not all(it.isdecimal() and len(it) < 10 for it in (*table, *status)):
        return told
    in_order = dict(zip(sorted(table, key=int), sorted(status, key=int), strict=True))
    if any(in_order.get(name) != number for name, number in ids.items()):
        return told
    return {name: status[number] for name, number in in_order.items()}


def listed_ranks(ranks: Any) -> str | None:
    """Ranks as text, "[0, 1]", where every one of them can be a rank; None where not."""
    if isinstance(ranks, list):
        numbers = [integer(rank) for rank in ranks[: MOST_RANKS + 1]]
        if not all(number is not None and 0 <= number < MOST_RANKS for number in numbers):
            return None
        return str(numbers)
    return ranks if isinstance(ranks, str) and _lists_ranks(ranks) else None


@lru_cache(maxsize=64)  # the world of 16,384 ranks is 100 kB of text, the same in every dump
def _lists_ranks(listed: str) -> bool:
    if not listed.isascii() or not _LIST.fullmatch(listed.strip().removeprefix("[").removesuffix("]")):
        return False
    return not _LONG_NUMBER.search(listed) or all(rank < MOST_RANKS for rank in ranks_in(listed))


@lru_cache(maxsize=65536)
def ranks_in(listed: str) -> tuple[int, ...]:
    """The ranks in "[0, 1, 2]", as listed; nothing is evaluated."""
    return tuple(int(digits) if len(digits) < 10 else MOST_RANKS for digits in _DIGITS.findall(listed))


@lru_cache(maxsize=65536)
def ascending(listed: str) -> str:
    """The same ranks as text, each once and in order: what two lists of one group have in common."""
    return str(sorted(set(ranks_in(listed))))
