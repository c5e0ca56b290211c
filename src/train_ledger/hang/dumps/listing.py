"""What are the single entries of one Flight Recorder dump, for a person who wants to see them?

Run in the reading process, as everything that touches a dump. Values are checked as they are taken over, what
is not understood is shown as far as it is and marked, and equal stacks are kept once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from train_ledger.hang.dumps.entry import Op, backends_without_completion, integer, op_of, text
from train_ledger.hang.dumps.understood import dump_in, is_understood

__all__ = ["Entry", "Listing", "Wanted", "list_entries"]

_MOST_ENTRIES = 200_000
_MOST_STACKS = 4096
_MOST_GROUPS = 4096


class Wanted(msgspec.Struct, frozen=True, array_like=True):
    """Which entries: of groups of these names or descriptions (all where none), the last so many (0: all)."""

    groups: tuple[str, ...] = ()
    last: int = 0


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One entry. `stack` is its place in the stacks of the listing, None where it holds no frames.

    Times are unix nanoseconds of the rank's host, None where the recorder had none.
    """

    group: str
    desc: str
    op: Op
    p2p_seq: int | None
    retired: bool | None
    started_ns: int | None
    completed_ns: int | None
    duration_ms: float | None
    timeout_ms: int | None
    thread: str
    stack: int | None
    is_understood: bool = True


class Listing(msgspec.Struct, frozen=True, array_like=True):
    """What was wanted of one file. `total` counts all entries of the file, `matching` those of the groups."""

    file: str
    rank: int
    host: str | None
    version: str
    mtime: float
    total: int
    matching: int
    entries: tuple[Entry, ...]
    stacks: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[str, str], ...]
    cut: str | None = None

    @property
    def newest_ns(self) -> int:
        return max((entry.op.created_ns for entry in self.entries[-1:]), default=0)


def list_entries(
    content: Any,
    wanted: Wanted,
    *,
    file: str,
    rank: int,
    host: str | None,
    mtime: float = 0.0,
    cut: str | None = None,
) -> Listing | None:
    """The wanted entries of a loaded dump in the order of issue; None where the content is no dump at all."""
    whole = dump_in(content)
    if whole is None:
        return None
    content, raw = whole
    told = [entry for entry in raw if type(entry) is dict]
    named = [_group(entry) for entry in told]
    places = [place for place, names in enumerate(named) if _is_wanted(names, wanted.groups)]
    shown = places[-min(wanted.last or _MOST_ENTRIES, _MOST_ENTRIES) :]
    retired = backends_without_completion(told)
    stacks: dict[tuple[str, ...], int] = {}
    entries = tuple(_entry(told[place], named[place], retired, stacks) for place in shown)
    odd = len(raw) - len(told)
    return Listing(
        file=file,
        rank=rank,
        host=host,
        version=text(content.get("version")) or "?",
        mtime=mtime,
        total=len(raw),
        matching=len(places),
        entries=entries,
        stacks=tuple(stacks),
        groups=tuple(sorted(set(named))[:_MOST_GROUPS]),
        cut="; ".join(filter(None, (cut, f"{odd} of {len(raw)} entries are none" if odd else None))) or None,
    )


def _is_wanted(names: Sequence[str], groups: Sequence[str]) -> bool:
    return not groups or any(name in groups for name in names if name)


def _group(entry: Mapping[Any, Any]) -> tuple[str, str]:
    """(name, description); before 1.4 the id stands for the name."""
    listed = entry.get("process_group")
    if isinstance(listed, list | tuple) and len(listed) == 2:
        return text(listed[0]), text(listed[1])
    return text(listed) or text(entry.get("pg_id")), ""


def _entry(
    entry: Mapping[Any, Any],
    names: tuple[str, str],
    retired: frozenset[str],
    stacks: dict[tuple[str, ...], int],
) -> Entry:
    op = op_of(entry, retired, frames=True)
    stack = stacks.setdefault(op.frames, len(stacks)) if op.frames and len(stacks) < _MOST_STACKS else None
    return Entry(
        group=names[0],
        desc=names[1],
        op=msgspec.structs.replace(op, frames=()),
        p2p_seq=integer(entry.get("p2p_seq_id")),
        retired=entry["retired"] if type(entry.get("retired")) is bool else None,
        started_ns=integer(entry.get("time_discovered_started_ns")) or None,
        completed_ns=integer(entry.get("time_discovered_completed_ns")) or None,
        duration_ms=_duration_ms(entry.get("duration_ms")),
        timeout_ms=integer(entry.get("timeout_ms")),
        thread=text(entry.get("thread_name")) or text(entry.get("thread_id")),
        stack=stack,
        is_understood=is_understood(entry),
    )


def _duration_ms(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value < 1e12 else None
