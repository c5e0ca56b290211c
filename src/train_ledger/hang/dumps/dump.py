"""What does one Flight Recorder dump say, in short?

A dump of 2000 entries is reduced at once to what the reasoning needs: for each process group the highest
sequence number, what is pending, and the last few entries. Everything here comes from an untrusted file:
values are checked as they are taken over, numbers are bounded, and nothing is evaluated. What is not
understood is left out, counted, and makes the dump one that is cut: what it does not show is not known.

Formats: versions 1.0 to 2.11, pickle and JSON (torch/csrc/distributed/c10d/FlightRecorder.hpp).
"""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from train_ledger.hang.dumps.batches import is_batching, still_open
from train_ledger.hang.dumps.coverage import coverage
from train_ledger.hang.dumps.entry import (
    RETIRED_IS_DONE,
    Op,
    backends_without_completion,
    integer,
    op_of,
    text,
)
from train_ledger.hang.dumps.entry_groups import entries_by_group
from train_ledger.hang.dumps.essential import essentials
from train_ledger.hang.dumps.group_table import (
    completed_by_id,
    enqueued_by_name,
    group_status,
    group_table,
)
from train_ledger.hang.dumps.held import Held, Key, OddEntryError, hold
from train_ledger.hang.dumps.old_sizes import without_doubtful_sizes
from train_ledger.hang.dumps.schema import are_ordinary
from train_ledger.hang.dumps.understood import dump_in, is_understood

__all__ = ["Dump", "Held", "Op", "reduce_dump"]


class Dump(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One file in short. `rank` and `host` come from its name, times are unix nanoseconds of its own host.

    `config` is the group table: name → (description, listed ranks as text). `entries` counts those that were
    understood; `cut` says in words what is lost, None where nothing is. `enqueued` is the recorder's own
    count of what was issued, by name of the group; `batching` names those whose sends and receives come in
    batches, in a dump of active entries alone.
    """

    file: str
    rank: int
    host: str | None
    version: str
    groups: tuple[Held, ...]
    config: dict[str, tuple[str, str]]
    entries: int
    active_only: bool
    wrapped: bool
    oldest_ns: int = 0
    newest_ns: int = 0
    mtime: float = 0.0
    has_frames: bool = False
    last: Op | None = None
    cut: str | None = None
    enqueued: dict[str, int] = {}
    batching: tuple[str, ...] = ()


def reduce_dump(
    content: Any, *, file: str, rank: int, host: str | None, mtime: float = 0.0, cut: str | None = None
) -> Dump | None:
    """The summary of a loaded dump; None where the content is no dump at all."""
    told = dump_in(content)
    if told is None:
        return None
    content, raw = told
    found = {"file": file, "rank": rank, "host": host, "mtime": mtime}
    if (essential := essentials(raw)) is not None:
        with contextlib.suppress(OddEntryError):
            return _summary(content, raw, raw, found, cut, essential)
    if are_ordinary(raw):
        with contextlib.suppress(OddEntryError):
            return _summary(content, raw, raw, found, cut)
    entries = [entry for entry in raw if is_understood(entry)]
    if raw and not entries and "version" not in content:
        return None
    return _summary(content, raw, entries, found, cut)


_Entries = list[dict[Any, Any]]


def _summary(
    content: dict[Any, Any],
    raw: list[Any],
    entries: _Entries,
    found: dict[str, Any],
    cut: str | None,
    essential: dict[Key, _Entries] | None = None,
) -> Dump:
    """Of the entries that are understood; `found` says where the dump was found.

    `essential` are those among them that count, where that is known; with them each of the rest counts for
    nothing but its being there. Raises OddEntryError where one that is to be kept is not understood.
    """
    if essential is None:
        retired = backends_without_completion(entries)
        groups, by_id = entries_by_group(entries)
        lost = len(raw) - sum(map(len, groups.values()))
    else:
        retired, groups, by_id, lost = RETIRED_IS_DONE, essential, False, 0
    config, odd_config = group_table(content.get("pg_config"))
    status, odd_status = group_status(content.get("pg_status"))
    completed = completed_by_id(content.get("pg_status"))
    active_only, wrapped = coverage(entries, groups.values(), status, completed)
    whole = active_only or not wrapped
    batching: tuple[str, ...] = ()
    if active_only:
        batching = tuple(key[0] for key, of_group in groups.items() if is_batching(of_group))
        opened = {key: still_open(of_group, entries[-1], status) for key, of_group in groups.items()}
        groups = {key: of_group for key, of_group in opened.items() if of_group}
    held = tuple(hold(key, of_group, retired, whole=whole, by_id=by_id) for key, of_group in groups.items())
    if lost:
        held = tuple(msgspec.structs.replace(of_group, exact=False) for of_group in held)
    if _is_before_2_4(content.get("version")):
        held = tuple(
            msgspec.structs.replace(it, ops=tuple(map(without_doubtful_sizes, it.ops))) for it in held
        )
    ids = {key[0]: text(of_group[0].get("pg_id")) for key, of_group in groups.items()}
    created = [integer(entry.get("time_created_ns")) or 0 for entry in (entries[:1] + entries[-1:])]
    last = op_of(entries[-1], retired, frames=True) if entries else None
    return Dump(
        **found,
        version=text(content.get("version")) or "?",
        groups=held,
        config=config,
        entries=len(entries),
        active_only=active_only,
        wrapped=wrapped,
        oldest_ns=created[0] if created else 0,
        newest_ns=created[-1] if created else 0,
        has_frames=any(entry.get("frames") for entry in entries[-16:]),
        last=last,
        cut="; ".join(filter(None, (cut, _not_understood(lost, len(raw)), odd_config, odd_status))) or None,
        batching=batching,
        enqueued={} if any(it.backend == "gloo" for it in held) else enqueued_by_name(status, config, ids),
    )


def _is_before_2_4(version: Any) -> bool:
    numbers = text(version).split(".")[:2]
    return all(map(str.isdecimal, numbers)) and [int(it[:9]) for it in numbers] < [2, 4]


def _not_understood(lost: int, entries: int) -> str | None:
    return f"{lost} of {entries} {'entry' if entries == 1 else 'entries'} not understood" if lost else None
