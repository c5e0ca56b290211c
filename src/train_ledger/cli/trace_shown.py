"""How do breakdowns and differences of traces read, for people and for scripts?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from train_ledger.render import harmless
from train_ledger.slow.trace.breakdown import Breakdown, Degraded, RankBreakdown
from train_ledger.slow.trace.buckets import BUCKETS
from train_ledger.slow.trace.conclusion import BucketDifference
from train_ledger.slow.trace.diff import TraceDifference
from train_ledger.slow.trace.kernels import KernelDifference

__all__ = [
    "breakdown_lines",
    "breakdown_values",
    "difference_lines",
    "difference_values",
    "remark_lines",
    "told_lines",
]

_MOST_RANKS = 16
_MOST_KERNELS = 8
_MOST_REMARKS = 12
_COUNTS = 0.03
_TELLS = 0.001


def breakdown_values(found: Breakdown) -> dict[str, Any]:
    """The answer of `trace breakdown --json`."""
    return {
        "ranks": {str(rank): _of_rank(it, found.held_by) for rank, it in found.ranks.items()},
        "degraded": [asdict(it) for it in found.degraded],
        "arrivals": {
            "offset_ns": {str(rank): value for rank, value in found.arrivals.offset_ns.items()},
            "uncertainty_ns": found.arrivals.uncertainty_ns,
            "collectives": found.arrivals.collectives,
            "latest": found.latecomer,
            "why": found.arrivals.why or None,
        },
    }


def _of_rank(rank: RankBreakdown, held_by: Mapping[str, str]) -> dict[str, Any]:
    return {
        "file": rank.file,
        "steps": [
            {
                "step": step.step,
                "window_ns": step.window_ns,
                "buckets_ns": dict(step.buckets_ns),
                "cpu_launch_ns": dict(step.host_parts_ns),
                "other_ns": dict(step.other_parts_ns),
            }
            for step in rank.steps
        ],
        "total": {
            "window_ns": rank.total.window_ns,
            "buckets_ns": dict(rank.total.buckets_ns),
            "cpu_launch_ns": dict(rank.total.host_parts_ns),
            "other_ns": dict(rank.total.other_parts_ns),
        },
        "held_by": dict(held_by),
        "caused_wait_ns": rank.caused_ns,
        "bubble_by_schedule_ns": rank.bubble_by_schedule_ns,
        "bubble_excess_ns": rank.bubble_excess_ns,
        "activity": asdict(rank.activity),
    }


def breakdown_lines(found: Breakdown) -> Iterator[str]:
    """A row a bucket and a column a rank; then who came late, and what could not be told."""
    if any(it.steps for it in found.ranks.values()):
        yield from _table(found)
        yield from told_lines(found)
    yield from remark_lines(found.degraded)


def _table(found: Breakdown) -> Iterator[str]:
    shown = dict(list(found.ranks.items())[:_MOST_RANKS])
    counts = {rank: len(it.steps) for rank, it in shown.items()}
    yield "mean step    " + "".join(f"{f'rank {rank}':>18}" for rank in shown)
    for name in ("window", *BUCKETS):
        cells = (_cell(it, name) for it in shown.values())
        yield f"{name:13}" + "".join(f"{cell:>18}" for cell in cells)
    yield f"{'steps':13}" + "".join(f"{count:>18}" for count in counts.values())
    if len(found.ranks) > len(shown):
        yield f"and {len(found.ranks) - len(shown)} more ranks: --json has them all"
    yield ""


def _cell(rank: RankBreakdown, name: str) -> str:
    steps = len(rank.steps)
    if not steps:
        return "–"
    if name == "window":
        return f"{rank.total.window_ns / steps / 1e6:,.3f} ms"
    value = rank.total.buckets_ns[name]
    if value is None:
        return "not known"
    share = value / rank.total.window_ns if rank.total.window_ns else 0.0
    return f"{value / steps / 1e6:,.3f} ms {share:4.0%}"


def told_lines(found: Breakdown) -> Iterator[str]:
    """What the figures say: what a bucket consists of, whose bubble is long, who came late."""
    for name, holder in found.held_by.items():
        yield f"{name} is not known; its time is in {holder}"
    for rank, it in list(found.ranks.items())[:_MOST_RANKS]:
        yield from _parts(rank, it)
    yield from _bubbles(found)
    known_to = f"clocks known to {found.arrivals.uncertainty_ns / 1e3:,.1f} µs"
    if (late := found.latecomer) is not None:
        by = f"{(found.ranks[late].caused_ns or 0) / 1e6:,.3f} ms later than the median of its groups"
        yield f"rank {late} made the others wait most: in all {by}, {known_to}"
    elif not found.arrivals.why:
        yield f"no rank made the others wait most of what they waited; {known_to}"


def _parts(rank: int, it: RankBreakdown) -> Iterator[str]:
    """What the host did, and what else there is, where it is a part of the step that counts."""
    for bucket, parts in (("cpu_launch", it.total.host_parts_ns), ("other", it.total.other_parts_ns)):
        told = {name: ns for name, ns in parts.items() if ns > _COUNTS * it.total.window_ns}
        if told:
            listed = ", ".join(f"{name} {ns / it.total.window_ns:.0%}" for name, ns in told.items())
            yield f"rank {rank}: {bucket} is {listed} of the step"


def _bubbles(found: Breakdown) -> Iterator[str]:
    told = {rank: it for rank, it in found.ranks.items() if it.bubble_excess_ns is not None}
    for rank, it in list(told.items())[:_MOST_RANKS]:
        whole, excess = it.total.window_ns or 1, it.bubble_excess_ns or 0
        by_schedule = (it.bubble_by_schedule_ns or 0) / whole
        yield f"rank {rank}: the schedule alone idles {by_schedule:.1%} of a step; {_beyond(excess / whole)}"
    if len(told) > 1 and any(
        (it.bubble_excess_ns or 0) > _COUNTS * it.total.window_ns for it in told.values()
    ):
        rank = max(told, key=lambda one: told[one].total.buckets_ns["compute"] or 0)
        yield f"rank {rank} computes longest: of these the stage that the others wait for"


def _beyond(excess: float) -> str:
    """What a bubble says that is so much longer than the schedule's, as a part of the step."""
    if excess > _COUNTS:
        return f"here {excess:+.1%}: stages out of balance"
    if excess < -_COUNTS:
        why = "it computes longer than the others, or all it receives waits, and is in comm_exposed"
        return f"here {excess:+.1%}: {why}"
    return "here as it should"


def remark_lines(degraded: tuple[Degraded, ...]) -> Iterator[str]:
    """What could not be read, and what is lost by it."""
    for it in degraded[:_MOST_REMARKS]:
        lost = f" ({it.lost} events lost)" if it.lost else ""
        yield harmless(f"{it.file}: {it.why}{lost}", longest=400)
    if len(degraded) > _MOST_REMARKS:
        yield f"and {len(degraded) - _MOST_REMARKS} more remarks: --json has them all"


def difference_values(found: TraceDifference) -> dict[str, Any]:
    """The answer of `trace diff --json`."""
    return {
        "window_ns": _difference(found.window),
        "buckets_ns": {name: it and _difference(it) for name, it in found.buckets.items()},
        "held_by": dict(found.held_by),
        "cpu_launch_ns": {name: _difference(it) for name, it in found.host_parts.items()},
        "other_ns": {name: _difference(it) for name, it in found.other_parts.items()},
        "conclusion": found.conclusion,
        "kernels": [{**asdict(it), "diff_ns": it.diff_ns} for it in found.kernels],
        "launches": [
            {
                "name": it.name,
                "old_ns": it.old_ns,
                "new_ns": it.new_ns,
                "diff_ns": it.diff_ns,
                "by_count_ns": it.by_count_ns,
                "by_length_ns": it.by_length_ns,
            }
            for it in found.calls
        ],
        "degraded": [asdict(it) for it in found.degraded],
    }


def _difference(it: BucketDifference) -> dict[str, Any]:
    return {"old": it.old, "new": it.new, "diff": it.diff, "ci95": list(it.ci95) if it.ci95 else None}


def difference_lines(found: TraceDifference) -> Iterator[str]:
    """The table of the seed's chapter 4: old, new, difference, how sure; then the conclusion."""
    yield f"{'mean step':13}{'old':>14}{'new':>14}{'difference':>14}   95 of 100"
    for name, it in (("window", found.window), *found.buckets.items()):
        mark = "  ←" if name == found.leading else ""
        yield f"{name:13}not known" if it is None else _row(name, it) + mark
    yield ""
    yield harmless(found.conclusion, longest=400)
    for name, holder in found.held_by.items():
        yield f"{name} is not known; its time is in {holder}"
    yield from _most_different("kernels", found.kernels, found.window)
    yield from _most_different("calls of the host", found.calls, found.window)
    yield from remark_lines(found.degraded)


def _most_different(what: str, kinds: Iterable[KernelDifference], window: BucketDifference) -> Iterator[str]:
    told = [it for it in kinds if abs(it.diff_ns) >= _TELLS * window.old][:_MOST_KERNELS]
    if told:
        yield ""
        yield f"{what} that differ most, in a step: longer by their number, by their length"
    for it in told:
        by = f"{it.by_count_ns / 1e6:+10,.3f} ms {it.by_length_ns / 1e6:+10,.3f} ms"
        yield harmless(f"  {by}  {it.name}", longest=160)


def _row(name: str, it: BucketDifference) -> str:
    sure = "" if it.ci95 is None else f"   {it.ci95[0] / 1e6:+,.3f} to {it.ci95[1] / 1e6:+,.3f} ms"
    cells = (f"{value / 1e6:>11,.3f} ms" for value in (it.old, it.new))
    return f"{name:13}{''.join(cells)}{it.diff / 1e6:>+11,.3f} ms{sure}"
