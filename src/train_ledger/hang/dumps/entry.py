"""What is one entry of a Flight Recorder dump?

Everything here comes from an untrusted file: values are checked as they are taken over, numbers are bounded,
and nothing is evaluated. What is done: a completed time or state for NCCL and its kin; `retired` for gloo,
whose state stays `scheduled` for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

__all__ = [
    "ALL_TO_ALL",
    "COMPLETED_IS_DONE",
    "RETIRED_IS_DONE",
    "Op",
    "backend_of",
    "backends_without_completion",
    "integer",
    "is_completed",
    "is_done",
    "is_p2p",
    "is_pair",
    "op_of",
    "pair_of",
    "seq_of",
    "text",
]

MAX_FRAMES = 48
MAX_TENSORS = 1024
MAX_SPLITS = 65536


class Op(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One entry: an operation that a rank issued.

    `seq` counts per process group and is the same on all members. `source` and `target` of a send or receive
    are ranks in the group, -1 for any source; None for a collective. `frames` are "file:line function", the
    newest call first; kept for few entries. `parts` is the number of entries of a coalesced operation.
    `record` counts all entries of the process in the order of issue; it says nothing across ranks. The splits
    of an all_to_all are what goes to and comes from each member, empty where none were recorded.
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
    record: int = 0
    input_splits: tuple[int, ...] = ()
    output_splits: tuple[int, ...] = ()


ALL_TO_ALL = frozenset({"all_to_all", "all_to_all_v_single", "alltoall_base", "alltoall"})
_NAMES = {
    "_all_gather_base": "all_gather_into_tensor",
    "_allgather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "all_to_all_single": "all_to_all",
}
_INPUT_SPLITS = ("input_split_sizes", "in_split_sizes", "input_splits", "in_splits")
_OUTPUT_SPLITS = ("output_split_sizes", "out_split_sizes", "output_splits", "out_splits")
"""Since 2.11; under which of these names is not settled."""
RETIRED_IS_DONE = frozenset({"gloo"})
COMPLETED_IS_DONE = ("nccl", "ncclx", "nccl2", "rccl", "rcclx")
_P2P = re.compile(r"(send|recv) (-?\d+|\?)(->|<-)(-?\d+|\?)")


def backends_without_completion(entries: list[dict[Any, Any]]) -> frozenset[str]:
    """The backends for which `retired` is the only sign of an end."""
    names = {name for entry in entries if type(name := entry.get("profiling_name")) is str}
    if all(name.partition(":")[0] in COMPLETED_IS_DONE for name in names):
        return frozenset(RETIRED_IS_DONE)
    completed: set[str] = set()
    retired: set[str] = set(RETIRED_IS_DONE)
    for entry in entries:
        name = entry.get("profiling_name")
        backend = name.partition(":")[0] if type(name) is str else ""
        if backend in COMPLETED_IS_DONE or backend in completed:
            continue
        if is_completed(entry):
            completed.add(backend)
        elif entry.get("retired") is True:
            retired.add(backend)
    return frozenset(retired - (completed - set(RETIRED_IS_DONE)))


def is_completed(entry: Mapping[Any, Any]) -> bool:
    return entry.get("state") == "completed" or bool(entry.get("time_discovered_completed_ns"))


def is_done(entry: Mapping[Any, Any], retired: frozenset[str]) -> bool:
    if is_completed(entry):
        return True
    name = entry.get("profiling_name")
    return type(name) is str and name.partition(":")[0] in retired and entry.get("retired") is True


def is_p2p(entry: Mapping[Any, Any]) -> bool:
    stated = entry.get("is_p2p")
    if stated is None:
        name = entry.get("profiling_name")
        return type(name) is str and _P2P.search(name) is not None
    return bool(stated)


def seq_of(entry: Mapping[Any, Any]) -> int | None:
    return integer(entry.get("collective_seq_id", entry.get("seq_id")))


def backend_of(entry: Mapping[Any, Any]) -> str:
    backend, colon, _ = text(entry.get("profiling_name")).partition(":")
    return backend if colon else ""


def op_of(
    entry: Mapping[Any, Any],
    retired: frozenset[str],
    *,
    frames: bool = False,
    done: bool | None = None,
    parts: int = 1,
) -> Op:
    label = text(entry.get("profiling_name")) or "unknown"
    backend, colon, name = label.partition(":")
    backend, name = (backend, name) if colon else ("", label)
    name, sends, source, target = _pair(name)
    return Op(
        seq=(integer(entry.get("p2p_seq_id")) if source is not None else seq_of(entry)) or 0,
        name=_NAMES.get(name, name),
        backend=backend,
        done=is_done(entry, retired) if done is None else done,
        state=text(entry.get("state")) or "unknown",
        created_ns=integer(entry.get("time_created_ns")) or 0,
        input_sizes=_sizes(entry.get("input_sizes")),
        output_sizes=_sizes(entry.get("output_sizes")),
        input_dtypes=_texts(entry.get("input_dtypes")),
        output_dtypes=_texts(entry.get("output_dtypes")),
        source=source,
        target=target,
        sends=sends,
        frames=_frames(entry.get("frames")) if frames else (),
        parts=parts,
        record=integer(entry.get("record_id")) or 0,
        input_splits=_splits(entry, _INPUT_SPLITS),
        output_splits=_splits(entry, _OUTPUT_SPLITS),
    )


def is_pair(entry: Mapping[Any, Any]) -> bool:
    """Whether it is one send or receive, not the closing entry of a batch of them."""
    return pair_of(entry) != ""


def pair_of(entry: Mapping[Any, Any]) -> str:
    """The "send 0->1" of a send or receive, by ranks in the group."""
    found = _P2P.search(text(entry.get("profiling_name")))
    return found[0] if found else ""


def _pair(name: str) -> tuple[str, bool, int | None, int | None]:
    """("send", True, 0, 1) of "send 0->1"; any source is -1."""
    found = _P2P.search(name)
    if not found:
        return name, False, None, None
    verb, near, arrow, far = found.groups()
    source, target = (near, far) if arrow == "->" else (far, near)
    return verb, verb == "send", _peer(source), _peer(target)


def _peer(rank: str) -> int:
    return int(rank) if rank.isdecimal() else -1


def integer(value: Any) -> int | None:
    """A 64-bit number; some writers put numbers in quotes."""
    if isinstance(value, str) and len(value) < 20 and value.removeprefix("-").isdecimal():
        value = int(value)
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None


def text(value: Any) -> str:
    if isinstance(value, str):
        short = value[:256]
        return short if short.isascii() else short.encode("utf-8", "replace").decode()
    return str(value) if type(value) is int and abs(value) < 1 << 63 else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(text(item) for item in value[:MAX_TENSORS]) if isinstance(value, list | tuple) else ()


def _sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(
        tuple(dim for dim in shape[:64] if type(dim) is int and 0 <= dim < 1 << 63)
        for shape in value[:MAX_TENSORS]
        if isinstance(shape, list | tuple)
    )


def _splits(entry: Mapping[Any, Any], keys: Iterable[str]) -> tuple[int, ...]:
    """A list of numbers, or that list in another as sizes are; empty where it is anything else."""
    value = next((entry[key] for key in keys if key in entry), None)
    if isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], list | tuple):
        value = value[0]
    if not isinstance(value, list | tuple) or len(value) > MAX_SPLITS:
        return ()
    return tuple(value) if all(type(it) is int and 0 <= it < 1 << 63 for it in value) else ()


def _frames(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        f"{text(frame.get('filename'))}:{integer(frame.get('line')) or 0} {text(frame.get('name'))}"
        for frame in value[:MAX_FRAMES]
        if isinstance(frame, dict)
    )
