"""What does one Flight Recorder dump say, in short?

A dump of 2000 entries is reduced at once to what the reasoning needs: for each process group the highest
sequence number, what is pending, and the last few entries. Everything here comes from an untrusted file:
values are checked as they are taken over, numbers are bounded, and nothing is evaluated.

Formats: versions 1.0 to 2.11, pickle and JSON (torch/csrc/distributed/c10d/FlightRecorder.hpp). What is done:
a completed time or state for NCCL and its kin; `retired` for gloo, whose state stays `scheduled` for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

__all__ = ["Dump", "Held", "Op", "reduce_dump"]

KEPT_PENDING = 24
KEPT_LAST = 8
KEPT_P2P = 256
MAX_GROUPS = 4096
MAX_CONFIG = 65536
MAX_FRAMES = 48
MAX_TENSORS = 1024
MAX_RANKS_TEXT = 4 << 20
RING_MINIMUM = 1000
"""A run of pending entries this long without a gap is a full ring, not a dump of active entries alone."""


class Op(msgspec.Struct, frozen=True, array_like=True):
    """One entry: an operation that a rank issued.

    `seq` counts per process group and is the same on all members. `source` and `target` of a send or receive
    are ranks in the group, -1 for any source; None for a collective. `frames` are "file:line function", the
    newest call first; kept for few entries. `parts` is the number of entries of a coalesced operation.
    """

    seq: int
    name: str
    backend: str
    done: bool
    state: str
    created_ns: int
    input_sizes: tuple[tuple[int, ...], ...] = ()
    output_sizes: tuple[tuple[int, ...], ...] = ()
    input_dtypes: tuple[str, ...] = ()
    output_dtypes: tuple[str, ...] = ()
    source: int | None = None
    target: int | None = None
    sends: bool = False
    frames: tuple[str, ...] = ()
    parts: int = 1


class Held(msgspec.Struct, frozen=True, array_like=True):
    """What one dump holds of one process group.

    `ops` are collectives in ascending order: all pending ones (bounded) and the last few done; `p2p` the
    pending sends and receives in the order of issue. `exact` says that nothing older than the lowest pending
    operation can be pending unseen. `enqueued` is the recorder's own count, where it can be trusted.
    """

    name: str
    desc: str
    backend: str
    highest: int | None
    lowest_pending: int | None
    exact: bool
    ops: tuple[Op, ...]
    p2p: tuple[Op, ...] = ()
    has_p2p: bool = False
    enqueued: int | None = None


class Dump(msgspec.Struct, frozen=True, array_like=True):
    """One file in short. `rank` and `host` come from its name, times are unix nanoseconds of its own host.

    `config` is the group table: name → (description, listed ranks as text). `default_enqueued` is the
    recorder's count for the first group, where no entry says which group that is.
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


_NAMES = {
    "_all_gather_base": "all_gather_into_tensor",
    "_allgather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "all_to_all_single": "all_to_all",
}
_RETIRED_IS_DONE = ("gloo",)
_COMPLETED_IS_DONE = ("nccl", "ncclx", "nccl2", "rccl", "rcclx")
_P2P = re.compile(r"(send|recv) (-?\d+|\?)(->|<-)(-?\d+|\?)")


def reduce_dump(
    content: Any, *, file: str, rank: int, host: str | None, mtime: float = 0.0, cut: str | None = None
) -> Dump | None:
    """The summary of a loaded dump; None where the content is no dump at all."""
    if isinstance(content, list):  # 1.0 was the bare list of entries
        content = {"entries": content}
    if not isinstance(content, dict) or not ({"entries", "pg_config", "version"} & content.keys()):
        return None
    raw = content.get("entries")
    entries = [entry for entry in raw if type(entry) is dict] if isinstance(raw, list) else []
    retired_backends = _backends_without_completion(entries)
    groups = _groups(entries, retired_backends)
    active_only, wrapped = _coverage(entries, groups)
    status = _status(content.get("pg_status"))
    names = _names_of_ids(entries)
    held = tuple(
        _hold(key, of_group, retired_backends, active_only or not wrapped, status.get(names.get(key, "")))
        for key, of_group in groups.items()
    )
    created = [_int(entry.get("time_created_ns")) or 0 for entry in (entries[:1] + entries[-1:])]
    last = _op(entries[-1], retired_backends, frames=True) if entries else None
    return Dump(
        file=file,
        rank=rank,
        host=host,
        version=_text(content.get("version")) or "?",
        groups=held,
        config=_config(content.get("pg_config")),
        entries=len(entries),
        active_only=active_only,
        wrapped=wrapped,
        oldest_ns=created[0] if created else 0,
        newest_ns=created[-1] if created else 0,
        mtime=mtime,
        has_frames=any(entry.get("frames") for entry in entries[-16:]),
        last=last,
        cut=cut,
        default_enqueued=None if any(h.backend == "gloo" for h in held) else status.get("0"),
    )


_Key = tuple[str, str]


def _groups(entries: Iterable[dict[Any, Any]], retired: frozenset[str]) -> dict[_Key, list[dict[Any, Any]]]:
    """The entries by (name, description) of their group, in the order of issue."""
    groups: dict[Any, list[dict[Any, Any]]] = {}
    for entry in entries:
        listed = entry.get("process_group")
        key = tuple(listed[:2]) if type(listed) is list else listed
        try:
            groups[key].append(entry)
        except KeyError:
            if len(groups) < MAX_GROUPS:
                groups[key] = [entry]
        except TypeError:  # unhashable: a damaged entry
            continue
    named: dict[_Key, list[dict[Any, Any]]] = {}
    for key, of_group in groups.items():
        for part in _by_id(of_group) if key is None else [(_key(key), of_group)]:
            named.setdefault(part[0], []).extend(part[1])
    return named


def _key(listed: Any) -> _Key:
    if isinstance(listed, tuple) and len(listed) == 2:
        return _text(listed[0]), _text(listed[1])
    return _text(listed), ""


def _by_id(entries: list[dict[Any, Any]]) -> list[tuple[_Key, list[dict[Any, Any]]]]:
    """Versions before 1.4 name the group by its id alone."""
    groups: dict[_Key, list[dict[Any, Any]]] = {}
    for entry in entries:
        groups.setdefault((_text(entry.get("pg_id", 0)), ""), []).append(entry)
    return list(groups.items())


def _names_of_ids(entries: list[dict[Any, Any]]) -> dict[_Key, str]:
    """For each group the id under which `pg_status` keeps it; ids differ from rank to rank."""
    names: dict[_Key, str] = {}
    for entry in entries[-512:]:
        listed = entry.get("process_group")
        if isinstance(listed, list | tuple) and "pg_id" in entry:
            names[_key(tuple(listed))] = _text(entry["pg_id"])
    return names


def _backends_without_completion(entries: list[dict[Any, Any]]) -> frozenset[str]:
    """The backends for which `retired` is the only sign of an end."""
    completed: set[str] = set()
    retired: set[str] = set(_RETIRED_IS_DONE)
    for entry in entries:
        name = entry.get("profiling_name")
        backend = name.partition(":")[0] if type(name) is str else ""
        if backend in _COMPLETED_IS_DONE or backend in completed:
            continue
        if _completed(entry):
            completed.add(backend)
        elif entry.get("retired") is True:
            retired.add(backend)
    return frozenset(retired - (completed - set(_RETIRED_IS_DONE)))


def _completed(entry: Mapping[Any, Any]) -> bool:
    return entry.get("state") == "completed" or bool(entry.get("time_discovered_completed_ns"))


def _done(entry: Mapping[Any, Any], retired: frozenset[str]) -> bool:
    if _completed(entry):
        return True
    name = entry.get("profiling_name")
    return type(name) is str and name.partition(":")[0] in retired and entry.get("retired") is True


def _is_p2p(entry: Mapping[Any, Any]) -> bool:
    stated = entry.get("is_p2p")
    if stated is None:
        name = entry.get("profiling_name")
        return type(name) is str and _P2P.search(name) is not None
    return bool(stated)


def _coverage(entries: list[dict[Any, Any]], groups: Mapping[_Key, Any]) -> tuple[bool, bool]:
    """(active entries alone, ring wrapped): what the absence of an entry means."""
    if not entries:
        return True, False
    ids = [_int(entry.get("record_id")) or 0 for entry in entries]
    nothing_done = not any(_completed(entry) or entry.get("retired") is True for entry in entries)
    without_gap = ids[-1] - ids[0] + 1 == len(ids)
    full_ring = without_gap and len(ids) >= RING_MINIMUM
    active_only = nothing_done and ids[0] > 0 and not full_ring
    return active_only, ids[0] > 0 and not active_only


def _hold(
    key: _Key, entries: list[dict[Any, Any]], retired: frozenset[str], whole: bool, enqueued: int | None
) -> Held:
    p2p = [entry for entry in entries if _is_p2p(entry)]
    collectives = [entry for entry in entries if not _is_p2p(entry)] if p2p else entries
    merged = _merge_coalesced(collectives, retired)
    pending = [item for item in merged if not item[2]]
    lowest = pending[0][0] if pending else None
    kept = {item[0]: item for item in (*pending[:KEPT_PENDING], *merged[-KEPT_LAST:])}
    before = [item for item in merged[-KEPT_LAST - len(pending) :] if item[2]]
    kept.update({item[0]: item for item in before[-KEPT_LAST:]})
    highest = merged[-1][0] if merged else None
    framed = {lowest, highest}
    ops = tuple(
        _op(item[1], retired, frames=seq in framed, done=item[2], parts=item[3])
        for seq, item in sorted(kept.items())
    )
    backend = _backend(entries[-1])
    return Held(
        name=key[0],
        desc=key[1],
        backend=backend,
        highest=highest,
        lowest_pending=lowest,
        exact=whole or lowest is None or any(item[2] and item[0] < lowest for item in merged),
        ops=ops,
        p2p=tuple(_pending_p2p(p2p, retired)),
        has_p2p=bool(p2p),
        enqueued=None if p2p or backend == "gloo" else enqueued,
    )


_Merged = tuple[int, dict[Any, Any], bool, int]


def _merge_coalesced(entries: list[dict[Any, Any]], retired: frozenset[str]) -> list[_Merged]:
    """(seq, entry, done, parts) ascending; the last entry of a coalesced operation closes it."""
    merged: dict[int, _Merged] = {}
    for entry in entries:
        seq = _seq(entry)
        if seq is None:
            continue
        earlier = merged.get(seq)
        parts = earlier[3] + 1 if earlier else 1
        merged[seq] = (seq, entry, _done(entry, retired), parts)
    return [merged[seq] for seq in sorted(merged)]


def _pending_p2p(entries: list[dict[Any, Any]], retired: frozenset[str]) -> list[Op]:
    """The sends and receives that are pending; members of a batch take the state of its closing entry."""
    closed: dict[int, bool] = {}
    for entry in entries:
        if not _P2P.search(_text(entry.get("profiling_name"))):
            closed[_int(entry.get("p2p_seq_id")) or 0] = _done(entry, retired)
    pending: list[Op] = []
    for entry in entries:
        done = _done(entry, retired) or closed.get(_int(entry.get("p2p_seq_id")) or 0, False)
        if not done and _P2P.search(_text(entry.get("profiling_name"))):
            pending.append(_op(entry, retired, frames=not pending, done=False))
    return pending[:KEPT_P2P]


def _seq(entry: Mapping[Any, Any]) -> int | None:
    return _int(entry.get("collective_seq_id", entry.get("seq_id")))


def _backend(entry: Mapping[Any, Any]) -> str:
    backend, colon, _ = _text(entry.get("profiling_name")).partition(":")
    return backend if colon else ""


def _op(
    entry: Mapping[Any, Any],
    retired: frozenset[str],
    *,
    frames: bool = False,
    done: bool | None = None,
    parts: int = 1,
) -> Op:
    label = _text(entry.get("profiling_name")) or "unknown"
    backend, colon, name = label.partition(":")
    backend, name = (backend, name) if colon else ("", label)
    name, sends, source, target = _pair(name)
    return Op(
        seq=(_int(entry.get("p2p_seq_id")) if source is not None else _seq(entry)) or 0,
        name=_NAMES.get(name, name),
        backend=backend,
        done=_done(entry, retired) if done is None else done,
        state=_text(entry.get("state")) or "unknown",
        created_ns=_int(entry.get("time_created_ns")) or 0,
        input_sizes=_sizes(entry.get("input_sizes")),
        output_sizes=_sizes(entry.get("output_sizes")),
        input_dtypes=_texts(entry.get("input_dtypes")),
        output_dtypes=_texts(entry.get("output_dtypes")),
        source=source,
        target=target,
        sends=sends,
        frames=_frames(entry.get("frames")) if frames else (),
        parts=parts,
    )


def _pair(name: str) -> tuple[str, bool, int | None, int | None]:
    """("send", True, 0, 1) of "send 0->1"; any source is -1."""
    found = _P2P.search(name)
    if not found:
        return name, False, None, None
    verb, near, arrow, far = found.groups()
    source, target = (near, far) if arrow == "->" else (far, near)
    return verb, verb == "send", _peer(source), _peer(target)


def _peer(text: str) -> int:
    return int(text) if text.isdigit() else -1


def _config(raw: Any) -> dict[str, tuple[str, str]]:
    """Group name → (description, ranks as text), from any of the shapes the versions have used."""
    config: dict[str, tuple[str, str]] = {}
    if not isinstance(raw, dict):
        return config
    for name, value in list(raw.items())[:MAX_CONFIG]:
        desc, ranks = "", value
        if isinstance(value, dict):
            desc, ranks = _text(value.get("desc")), value.get("ranks")
        if isinstance(ranks, list):
            ranks = str([rank for rank in ranks if isinstance(rank, int)])
        if isinstance(ranks, str) and len(ranks) <= MAX_RANKS_TEXT:
            config[_text(name)] = (desc, ranks)
    return config


def _status(raw: Any) -> dict[str, int]:
    """Group id → highest number that was enqueued."""
    if not isinstance(raw, dict):
        return {}
    counts = {
        _text(name): _int(value.get("last_enqueued_collective"))
        for name, value in raw.items()
        if isinstance(value, dict)
    }
    return {name: count for name, count in counts.items() if count is not None}


def _int(value: Any) -> int | None:
    """A 64-bit number; some writers put numbers in quotes."""
    if isinstance(value, str) and len(value) < 20 and value.removeprefix("-").isdecimal():
        value = int(value)
    return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value[:256]
    return str(value) if isinstance(value, int) and abs(value) < 1 << 63 else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_text(item) for item in value[:MAX_TENSORS]) if isinstance(value, list) else ()


def _sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        tuple(dim for dim in shape[:64] if isinstance(dim, int) and 0 <= dim < 1 << 63)
        for shape in value[:MAX_TENSORS]
        if isinstance(shape, list)
    )


def _frames(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        f"{_text(frame.get('filename'))}:{_int(frame.get('line')) or 0} {_text(frame.get('name'))}"
        for frame in value[:MAX_FRAMES]
        if isinstance(frame, dict)
    )
