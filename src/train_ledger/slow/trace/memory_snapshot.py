"""What does a snapshot of CUDA's caching allocator say, without running anything that it says?

torch pickles a snapshot of plain values: segments, their blocks, where each came from, and the allocator's
own trace. A pickle is a program, and a run directory is shared: every global and every persistent id in it
is refused. Of a file of more bytes than a person would wait for only the segments are read, which stand
first.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import resource
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from train_ledger.run_dir import read_small
from train_ledger.slow.trace.plain_pickle import PlainPickleError, first_value

__all__ = ["Block", "MemorySummary", "SnapshotError", "memory_summary"]

_LARGEST_BYTES = 512 << 20
_BEGINNING_BYTES = 64 << 20
_SPARE_BYTES = 256 << 20
_BYTES_A_BYTE = 24
_MOST_BLOCKS = 20
_MOST_FRAMES = 6
_RELEASE = "releases"
_BAD = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
    ImportError, RecursionError, MemoryError, struct.error,
)  # fmt: skip


class SnapshotError(Exception):
    """The file is no snapshot that can be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of one kind and place: how many there are, and where they were allocated, innermost first."""

    size_bytes: int
    count: int
    state: str
    frames: tuple[str, ...]

    @property
    def total_bytes(self) -> int:
        return self.size_bytes * self.count


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """Bytes of all devices in the snapshot.

    `inactive_split_bytes` lie free in segments of which another part is in use: they can neither be given
    back nor hold anything larger than the gap, `largest_free_bytes` being the largest. `releases` is how
    often the allocator gave free segments back, as it does to try an allocation again, or when the cache is
    emptied, as far as its trace reaches; None: no trace was recorded, or it was not read since the file is
    too large, as `is_partial` says.
    """

    segments: int
    reserved_bytes: int
    allocated_bytes: int
    requested_bytes: int
    active_awaiting_free_bytes: int
    inactive_bytes: int
    inactive_split_bytes: int
    largest_free_bytes: int
    by_kind: Mapping[str, tuple[int, int]]
    largest: tuple[Block, ...]
    releases: int | None
    out_of_memory: int | None
    has_frames: bool
    is_partial: bool = False

    @property
    def fragmentation(self) -> float:
        """The part of what is reserved that lies in gaps."""
        return self.inactive_split_bytes / self.reserved_bytes if self.reserved_bytes else 0.0


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles plain values alone."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise SnapshotError(f"refused: it asks to call {module[:80]}.{name[:80]}; nothing of it was run")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise SnapshotError("refused: it holds a persistent id, a snapshot holds plain values alone")


def memory_summary(path: Path) -> MemorySummary:
    """What a snapshot says in short.

    Raises SnapshotError for what is none, OSError where the file cannot be read.
    """
    is_partial = path.is_file() and path.stat().st_size > _LARGEST_BYTES
    content = _beginning(path) if is_partial else _loaded(path)
    segments = content.get("segments") if isinstance(content, dict) else content
    if not isinstance(segments, list):
        raise SnapshotError(f"{path}: no snapshot of torch's allocator: it has no list of segments")
    kept = [it for it in segments if isinstance(it, dict)]
    blocks = [(segment, block) for segment in kept for block in _blocks(segment)]
    traces = content.get("device_traces") if isinstance(content, dict) else None
    return replace(_summary(kept, blocks, _actions(traces)), is_partial=is_partial)


def _beginning(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        try:
            return {"segments": first_value(file.read(_BEGINNING_BYTES), "segments")}
        except PlainPickleError as error:
            why = f"{path.stat().st_size >> 20} MiB, too large to be read as a whole"
            raise SnapshotError(f"{path}: {why}, and of its beginning: {error}") from None


def _loaded(path: Path) -> Any:
    content = read_small(path, limit_bytes=_LARGEST_BYTES)
    try:
        with _within(_SPARE_BYTES + _BYTES_A_BYTE * len(content)):
            return _PlainUnpickler(io.BytesIO(content)).load()
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from None
    except _BAD as error:
        raise SnapshotError(f"{path}: damaged, or no pickle: {str(error)[:160]}") from error


@contextlib.contextmanager
def _within(more_bytes: int) -> Iterator[None]:
    """No more memory than this is had meanwhile: five bytes of a pickle can ask for gigabytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = [it for it in (held + more_bytes, soft) if it != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _summary(
    segments: Sequence[Mapping[str, Any]],
    blocks: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    actions: Counter[str] | None,
) -> MemorySummary:
    free = [(segment, block) for segment, block in blocks if _state(block) == "inactive"]
    split = [_bytes(block, "size") for segment, block in free if len(_blocks(segment)) > 1]
    largest = _largest([block for _, block in blocks if _state(block) != "inactive"])
    return MemorySummary(
        segments=len(segments),
        reserved_bytes=sum(_bytes(it, "total_size") for it in segments),
        allocated_bytes=_sum(blocks, "active_allocated"),
        requested_bytes=sum(
            _bytes(block, "requested_size") for _, block in blocks if _state(block) == "active_allocated"
        ),
        active_awaiting_free_bytes=_sum(blocks, "active_pending_free") + _sum(blocks, "active_awaiting_free"),
        inactive_bytes=sum(_bytes(block, "size") for _, block in free),
        inactive_split_bytes=sum(split),
        largest_free_bytes=max((_bytes(block, "size") for _, block in free), default=0),
        by_kind=_by_kind(segments),
        largest=largest,
        releases=None if actions is None else actions[_RELEASE],
        out_of_memory=None if actions is None else actions["oom"],
        has_frames=any(block.frames for block in largest),
    )


def _sum(blocks: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], state: str) -> int:
    return sum(_bytes(block, "size") for _, block in blocks if _state(block) == state)


def _blocks(segment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = segment.get("blocks")
    return [it for it in found if isinstance(it, dict)] if isinstance(found, list) else []


def _state(block: Mapping[str, Any]) -> str:
    return _text(block.get("state", "inactive"))


def _bytes(it: Mapping[str, Any], name: str) -> int:
    value = it.get(name)
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def _text(value: object) -> str:
    """Of plain text and numbers alone: lists within lists, each there twice, would fill the memory."""
    if isinstance(value, str):
        return value[:200]
    return str(value) if isinstance(value, int) and abs(value) < 1 << 62 else "?"


def _by_kind(segments: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Of each kind of segment how many there are and what they reserve."""
    found: dict[str, tuple[int, int]] = {}
    for segment in segments:
        kind = _text(segment.get("segment_type", "unknown"))[:40]
        kind += " expandable" if segment.get("is_expandable") is True else ""
        count, size = found.get(kind, (0, 0))
        found[kind] = count + 1, size + _bytes(segment, "total_size")
    return found


def _largest(blocks: Sequence[Mapping[str, Any]]) -> tuple[Block, ...]:
    """Blocks of the same size and place are one entry, the ones that take most in all first."""
    counts: Counter[tuple[int, str, tuple[str, ...]]] = Counter()
    for block in blocks:
        counts[_bytes(block, "size"), _state(block), tuple(_frames(block))] += 1
    found = [Block(size, count, state, frames) for (size, state, frames), count in counts.items()]
    return tuple(sorted(found, key=lambda it: -it.total_bytes)[:_MOST_BLOCKS])


def _frames(block: Mapping[str, Any]) -> Iterator[str]:
    """Where it was allocated: frames of Python where there are any, else of C++."""
    frames = block.get("frames")
    if not isinstance(frames, list):
        history = block.get("history")
        first = history[0] if isinstance(history, list) and history else None
        frames = first.get("frames") if isinstance(first, dict) else None
    told = [it for it in frames if isinstance(it, dict)] if isinstance(frames, list) else []
    of_python = [it for it in told if _text(it.get("filename")).endswith(".py")]
    for it in (of_python or told)[:_MOST_FRAMES]:
        file, line, name = (_text(it.get(key)) for key in ("filename", "line", "name"))
        yield f"{file}:{line} {name}"[:300]


def _actions(traces: object) -> Counter[str] | None:
    """How often the allocator did what; segments freed one after the other are one release."""
    listed = [trace for trace in traces if isinstance(trace, list)] if isinstance(traces, list) else []
    entries = [entry for trace in listed for entry in trace]
    if not entries:
        return None
    found: Counter[str] = Counter()
    before = ""
    for entry in entries:
        action = _text(entry.get("action")) if isinstance(entry, dict) else ""
        if action == "segment_free" and before != "segment_free":
            found[_RELEASE] += 1
        found[action] += 1
        before = action
    return found
