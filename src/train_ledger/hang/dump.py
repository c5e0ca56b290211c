"""What does one Flight Recorder dump say, in short?

A dump of 2000 entries is reduced at once to what the reasoning needs: for each process group the highest
sequence number, what is pending, and the last few entries. Everything here comes from an untrusted file:
values are checked as they are taken over, numbers are bounded, and nothing is evaluated. What is not
understood is left out, counted, and makes the dump one that is cut: what it does not show is not known.

Formats: versions 1.0 to 2.11, pickle and JSON (torch/csrc/distributed/c10d/FlightRecorder.hpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from train_ledger.hang.columns import are_ordinary
from train_ledger.hang.entry import (
    Op,
    backend_of,
    backends_without_completion,
    integer,
    is_completed,
    is_done,
    is_p2p,
    is_pair,
    op_of,
    seq_of,
    text,
)
from train_ledger.hang.group_table import group_status, group_table
from train_ledger.hang.understood import is_understood

__all__ = ["Dump", "Held", "Op", "reduce_dump"]

KEPT_PENDING = 24
KEPT_LAST = 8
KEPT_P2P = 256
MAX_GROUPS = 4096
RING_MINIMUM = 1000
"""A run of pending entries this long without a gap is a full ring, not a dump of active entries alone."""


class Held(msgspec.Struct, frozen=True, array_like=True):
    """What one dump holds of one process group.

    `ops` are collectives in ascending order: all pending ones (bounded) and the last few done; `p2p` the
    pending sends and receives in the order of issue. `exact` says that nothing older than the lowest pending
    operation can be pending unseen.
    """

    name: str
    desc: str
    backend: str
    highest: int | None
    lowest_pending: int | None
    exact: bool
    ops: tuple[Op, ...]
    p2p: tuple[Op, ...] = ()


class Dump(msgspec.Struct, frozen=True, array_like=True):
    """One file in short. `rank` and `host` come from its name, times are unix nanoseconds of its own host.

    `config` is the group table: name → (description, listed ranks as text). `entries` counts those that were
    understood; `cut` says in words what is lost, None where nothing is. `default_enqueued` is the recorder's
    count for the first group, where no entry says which group that is.
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
    default_enqueued: int | None = None


def reduce_dump(
    content: Any, *, file: str, rank: int, host: str | None, mtime: float = 0.0, cut: str | None = None
) -> Dump | None:
    """The summary of a loaded dump; None where the content is no dump at all."""
    if isinstance(content, list):  # 1.0 was the bare list of entries
        content = {"entries": content} if content else None
    if not isinstance(content, dict) or not ({"entries", "pg_config", "version"} & content.keys()):
        return None
    raw = content.get("entries", [])
    if not isinstance(raw, list):
        return None
    entries = raw if are_ordinary(raw) else [entry for entry in raw if is_understood(entry)]
    if raw and not entries and "version" not in content:
        return None
    retired_backends = backends_without_completion(entries)
    groups = _groups(entries)
    config, odd_config = group_table(content.get("pg_config"))
    lost = len(raw) - sum(map(len, groups.values()))
    active_only, wrapped = _coverage(entries)
    status, odd_status = group_status(content.get("pg_status"))
    whole = active_only or not wrapped
    held = tuple(_hold(key, of_group, retired_backends, whole) for key, of_group in groups.items())
    if lost:
        held = tuple(msgspec.structs.replace(of_group, exact=False) for of_group in held)
    created = [integer(entry.get("time_created_ns")) or 0 for entry in (entries[:1] + entries[-1:])]
    last = op_of(entries[-1], retired_backends, frames=True) if entries else None
    return Dump(
        file=file,
        rank=rank,
        host=host,
        version=text(content.get("version")) or "?",
        groups=held,
        config=config,
        entries=len(entries),
        active_only=active_only,
        wrapped=wrapped,
        oldest_ns=created[0] if created else 0,
        newest_ns=created[-1] if created else 0,
        mtime=mtime,
        has_frames=any(entry.get("frames") for entry in entries[-16:]),
        last=last,
        cut="; ".join(filter(None, (cut, _not_understood(lost, len(raw)), odd_config, odd_status))) or None,
        default_enqueued=None if any(h.backend == "gloo" for h in held) else status.get("0"),
    )


def _not_understood(lost: int, entries: int) -> str | None:
    return f"{lost} of {entries} {'entry' if entries == 1 else 'entries'} not understood" if lost else None


_Key = tuple[str, str]


def _groups(entries: Iterable[dict[Any, Any]]) -> dict[_Key, list[dict[Any, Any]]]:
    """The entries by (name, description) of their group, in the order of issue."""
    groups: dict[Any, list[dict[Any, Any]]] = {}
    for entry in entries:
        listed = entry.get("process_group")
        key = tuple(listed) if type(listed) is list else listed
        if key in groups:
            groups[key].append(entry)
        elif len(groups) < MAX_GROUPS:
            groups[key] = [entry]
    named: dict[_Key, list[dict[Any, Any]]] = {}
    if len(groups) > 1:
        groups.pop(None, None)  # where others name their group, it lost its name
    for key, of_group in groups.items():
        for part in _by_id(of_group) if key is None else [(_key(key), of_group)]:
            named.setdefault(part[0], []).extend(part[1])
    return named


def _key(listed: Any) -> _Key:
    if isinstance(listed, tuple) and len(listed) == 2:
        return text(listed[0]), text(listed[1])
    return text(listed), ""


def _by_id(entries: list[dict[Any, Any]]) -> list[tuple[_Key, list[dict[Any, Any]]]]:
    """Versions before 1.4 name the group by its id alone."""
    groups: dict[_Key, list[dict[Any, Any]]] = {}
    for entry in entries:
        groups.setdefault((text(entry.get("pg_id", 0)), ""), []).append(entry)
    return list(groups.items())


def _coverage(entries: list[dict[Any, Any]]) -> tuple[bool, bool]:
    """(active entries alone, ring wrapped): what the absence of an entry means."""
    if not entries:
        return True, False
    first, last = (integer(entry.get("record_id")) for entry in (entries[0], entries[-1]))
    if first is None or last is None:
        return False, True
    nothing_done = not any(is_completed(entry) or entry.get("retired") is True for entry in entries)
    full_ring = last - first + 1 == len(entries) >= RING_MINIMUM
    active_only = nothing_done and first > 0 and not full_ring
    return active_only, first > 0 and not active_only


def _hold(key: _Key, entries: list[dict[Any, Any]], retired: frozenset[str], whole: bool) -> Held:
    p2p = [entry for entry in entries if entry.get("is_p2p") is not False and is_p2p(entry)]
    collectives = [entry for entry in entries if not is_p2p(entry)] if p2p else entries
    merged = _merge_coalesced(collectives, retired)
    pending = [item for item in merged if not item[2]]
    lowest = pending[0][0] if pending else None
    kept = {item[0]: item for item in (*pending[:KEPT_PENDING], *merged[-KEPT_LAST:])}
    before = [item for item in merged[-KEPT_LAST - len(pending) :] if item[2]]
    kept.update({item[0]: item for item in before[-KEPT_LAST:]})
    highest = merged[-1][0] if merged else None
    framed = {lowest, highest}
    ops = tuple(
        op_of(item[1], retired, frames=seq in framed, done=item[2], parts=item[3])
        for seq, item in sorted(kept.items())
    )
    backend = backend_of(entries[-1])
    return Held(
        name=key[0],
        desc=key[1],
        backend=backend,
        highest=highest,
        lowest_pending=lowest,
        exact=whole or lowest is None or any(item[2] and item[0] < lowest for item in merged),
        ops=ops,
        p2p=tuple(_pending_p2p(p2p, retired)),
    )


_Merged = tuple[int, dict[Any, Any], bool, int]


def _merge_coalesced(entries: list[dict[Any, Any]], retired: frozenset[str]) -> list[_Merged]:
    """(seq, entry, done, parts) ascending; the last entry of a coalesced operation closes it."""
    merged: dict[int, _Merged] = {}
    for entry in entries:
        seq = entry.get("collective_seq_id")
        if type(seq) is not int and (seq := seq_of(entry)) is None:
            continue
        done = entry.get("state") == "completed" or is_done(entry, retired)
        earlier = merged.get(seq)
        merged[seq] = (seq, entry, done, earlier[3] + 1 if earlier else 1)
    return [merged[seq] for seq in sorted(merged)]


def _pending_p2p(entries: list[dict[Any, Any]], retired: frozenset[str]) -> list[Op]:
    """The sends and receives that are pending; members of a batch take the state of its closing entry."""
    closed: dict[int, bool] = {}
    for entry in entries:
        if not is_pair(entry):
            closed[integer(entry.get("p2p_seq_id")) or 0] = is_done(entry, retired)
    pending: list[Op] = []
    for entry in entries:
        done = is_done(entry, retired) or closed.get(integer(entry.get("p2p_seq_id")) or 0, False)
        if not done and is_pair(entry):
            pending.append(op_of(entry, retired, frames=not pending, done=False))
    return pending[:KEPT_P2P]
