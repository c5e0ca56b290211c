"""How does what fills a GPU's memory read: for people, for scripts, on a page?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from train_ledger.render.bars import Bar, Bars
from train_ledger.render.figures import Figures
from train_ledger.render.report import Report, Section, pairs, points
from train_ledger.slow.trace.memory_snapshot import MemorySummary

__all__ = ["memory_lines", "memory_values", "report_of_memory"]


def memory_values(found: MemorySummary) -> dict[str, Any]:
    """The answer of `trace memory --json`."""
    values = asdict(found)
    values["by_kind"] = {
        kind: {"segments": count, "reserved_bytes": size} for kind, (count, size) in found.by_kind.items()
    }
    return {**values, "fragmentation": found.fragmentation}


def memory_lines(found: MemorySummary) -> Iterator[str]:
    """The sums, then what takes most and where it was allocated."""
    yield f"reserved    {_gib(found.reserved_bytes)} in {found.segments} segments"
    for kind, (count, size) in found.by_kind.items():
        yield f"            {_gib(size)} in {count} {kind}"
    yield f"allocated   {_gib(found.allocated_bytes)}, of which {_gib(found.requested_bytes)} were asked for"
    yield f"freed       {_gib(found.active_awaiting_free_bytes)} that a stream may still use"
    yield f"free        {_gib(found.inactive_bytes)}, the largest block {_gib(found.largest_free_bytes)}"
    yield f"in gaps     {_gib(found.inactive_split_bytes)}, {found.fragmentation:.0%} of what is reserved"
    yield _allocator(found)
    if found.largest:
        yield ""
        yield _heading(found)
    for block in found.largest:
        each = f"{block.count} × {block.size_bytes / (1 << 20):,.1f} MiB"
        yield f"{_gib(block.total_bytes)}  {each} {block.state}"
        yield from (f"      {frame}" for frame in block.frames[:3])


def _allocator(found: MemorySummary) -> str:
    if found.is_partial:
        why = "the file is too large; what the monitor records by --record-history is not"
        return f"the allocator's own trace was not read: {why}"
    if found.releases is None:
        return "the allocator's own trace was not recorded: ask for it by --record-history"
    return f"gave segments back {found.releases} times, ran out of memory {found.out_of_memory} times"


def _heading(found: MemorySummary) -> str:
    return "what takes most" + ("" if found.has_frames else " (where it was allocated was not recorded)")


def _gib(size: int) -> str:
    return f"{size / (1 << 30):8.3f} GiB"


def report_of_memory(found: MemorySummary) -> Report:
    """The same for a page: all of it in one bar, the kinds of segments, the largest blocks."""
    gaps = f"{_short(found.inactive_split_bytes)} lie in gaps ({found.fragmentation:.0%})"
    verdict = f"{_short(found.allocated_bytes)} of {_short(found.reserved_bytes)} reserved are in use; {gaps}"
    sections = [Section("", (_bar(found),)), *pairs("", _sums(found))]
    kinds = tuple((kind, f"{count:,}", _short(size)) for kind, (count, size) in found.by_kind.items())
    if kinds:
        sections.append(Section("segments", (Figures(("kind", "number", "reserved"), kinds),)))
    if found.largest:
        sections.append(Section(_heading(found), (_largest(found),)))
    sections += points("the allocator", [_allocator(found)])
    return Report(verdict, "trouble" if found.out_of_memory else "fine", tuple(sections))


def _bar(found: MemorySummary) -> Bars:
    whole = max(0, found.inactive_bytes - found.inactive_split_bytes)
    parts = {
        "allocated": found.allocated_bytes,
        "free in gaps": found.inactive_split_bytes,
        "freed, and a stream may still use it": found.active_awaiting_free_bytes,
        "free in whole segments": whole,
    }
    bar = Bar("reserved", tuple(map(float, parts.values())), _short(found.reserved_bytes))
    return Bars("what the reserved memory holds", tuple(parts), "AGSF", (bar,))


def _sums(found: MemorySummary) -> Iterator[tuple[str, str]]:
    yield "reserved", f"{_short(found.reserved_bytes)} in {found.segments:,} segments"
    yield "allocated", f"{_short(found.allocated_bytes)}; {_short(found.requested_bytes)} were asked for"
    yield "free", f"{_short(found.inactive_bytes)}, the largest block {_short(found.largest_free_bytes)}"


def _largest(found: MemorySummary) -> Figures:
    rows = tuple(
        (
            _short(block.total_bytes),
            f"{block.count:,} × {block.size_bytes / (1 << 20):,.1f} MiB",
            block.state,
            " ← ".join(block.frames[:3]),
        )
        for block in found.largest
    )
    return Figures(("in all", "blocks", "state", "allocated at"), rows, left=frozenset((0, 2, 3)))


def _short(size: int) -> str:
    return f"{size / (1 << 30):,.2f} GiB" if size >= 1 << 28 else f"{size / (1 << 20):,.1f} MiB"
