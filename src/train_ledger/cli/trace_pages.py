"""How do breakdowns and differences of traces look on a page?

A bar and a row for each rank. Of many ranks those are shown whose steps differ most from the median of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from train_ledger.cli.trace_shown import remark_lines, told_lines
from train_ledger.render.bars import Bar, Bars
from train_ledger.render.figures import Figures
from train_ledger.render.picture import Cell, Mark
from train_ledger.render.report import Report, Section, points
from train_ledger.slow.trace.breakdown import Breakdown, RankBreakdown
from train_ledger.slow.trace.buckets import BUCKETS
from train_ledger.slow.trace.conclusion import BucketDifference
from train_ledger.slow.trace.diff import TraceDifference
from train_ledger.slow.trace.kernels import KernelDifference

__all__ = ["report_of_breakdown", "report_of_difference"]

_MOST_RANKS = 48
_MOST_KERNELS = 20
_TELLS = 0.001
_LETTERS = {
    "compute": "C",
    "comm_exposed": "X",
    "cpu_launch": "L",
    "other": "O",
    "data_wait": "D",
    "bubble": "B",
    "recompute": "R",
    "straggler": "S",
    "kernel_eff": "K",
}
"""The buckets in the order of their colours, dark ones and light ones by turns, and the letter of each."""


def report_of_breakdown(found: Breakdown) -> Report:
    """Where a mean step goes, rank by rank; then what the figures say and what could not be read."""
    timed = {rank: it for rank, it in found.ranks.items() if it.steps and it.total.window_ns}
    sections: list[Section] = []
    if timed:
        chosen = _chosen(timed, found.latecomer)
        left = len(timed) - len(chosen)
        note = (
            (f"{left} more ranks, nearer to the median of all, are not drawn; --json has them all",)
            if left
            else ()
        )
        sections.append(
            Section("", (_bars(timed, chosen, found.latecomer, note), _table(timed, chosen, found)))
        )
    sections += points("what the figures say", told_lines(found))
    sections += points("not observed", remark_lines(found.degraded))
    if not timed:
        return Report("cannot tell: no step of a GPU is in these traces", "unsure", tuple(sections))
    if (late := found.latecomer) is not None:
        return Report(f"rank {late} made the others wait most", "trouble", tuple(sections))
    return Report(_most(timed), "fine", tuple(sections))


def _most(timed: Mapping[int, RankBreakdown]) -> str:
    """Into what most of the steps went, in the mean of the ranks."""
    window_ns = sum(it.total.window_ns for it in timed.values())
    sums = {name: sum(it.total.buckets_ns[name] or 0 for it in timed.values()) for name in BUCKETS}
    first, second, *_ = sorted(sums, key=lambda name: -sums[name])
    shares = [f"{sums[name] / window_ns:.0%} {name}" for name in (first, second) if sums[name]]
    return f"a step is {' and '.join(shares)}"


def _shares(it: RankBreakdown) -> tuple[float, ...]:
    """Milliseconds of a mean step in each bucket, in the order of the letters."""
    return tuple((it.total.buckets_ns[name] or 0) / len(it.steps) / 1e6 for name in _LETTERS)


def _chosen(timed: Mapping[int, RankBreakdown], late: int | None) -> list[int]:
    if len(timed) <= _MOST_RANKS:
        return sorted(timed)
    usual = _median(timed)
    off = {
        rank: sum(abs(own - of_all) for own, of_all in zip(_shares(it), usual, strict=True))
        for rank, it in timed.items()
    }
    return sorted(sorted(off, key=lambda rank: (rank != late, -off[rank], rank))[:_MOST_RANKS])


def _median(timed: Mapping[int, RankBreakdown]) -> tuple[float, ...]:
    return tuple(median(column) for column in zip(*map(_shares, timed.values()), strict=True))


def _bars(
    timed: Mapping[int, RankBreakdown], chosen: Sequence[int], late: int | None, notes: tuple[str, ...]
) -> Bars:
    bars = [
        Bar("median of all", usual, f"{sum(usual):,.4g} ms") for usual in [_median(timed)] if len(timed) > 2
    ]
    for rank in chosen:
        parts = _shares(timed[rank])
        bars.append(Bar(f"rank {rank}", parts, f"{sum(parts):,.4g} ms", is_culprit=rank == late))
    return Bars("a mean step of each rank, by where its time goes", *_kinds(), tuple(bars), notes)


def _kinds() -> tuple[tuple[str, ...], str]:
    return tuple(_LETTERS), "".join(_LETTERS.values())


def _table(timed: Mapping[int, RankBreakdown], chosen: Sequence[int], found: Breakdown) -> Figures:
    known = [name for name in BUCKETS if name not in found.held_by]
    rows: list[tuple[Cell | str, ...]] = []
    for rank in chosen:
        it = timed[rank]
        head = Cell(f"rank {rank}", "odd" if rank == found.latecomer else "")
        window = f"{it.total.window_ns / len(it.steps) / 1e6:,.3f}"
        rows.append((head, str(len(it.steps)), window, *(_cell(it, name) for name in known)))
    title = "milliseconds of a mean step, and their share of it"
    return Figures(("rank", "steps", "step", *known), tuple(rows), title)


def _cell(it: RankBreakdown, name: str) -> str:
    value = it.total.buckets_ns[name]
    if value is None:
        return "not known"
    return f"{value / len(it.steps) / 1e6:,.3f} ({value / it.total.window_ns:.0%})"


def report_of_difference(found: TraceDifference) -> Report:
    """Old and new beside each other, how sure the differences are, and what differs most."""
    sections = [
        Section("", (_both(found), _differences(found))),
        *_kernels("kernels that differ most", found.kernels, found.window),
        *_kernels("calls of the host that differ most", found.calls, found.window),
        *points("not observed", _not_observed(found)),
    ]
    return Report(found.conclusion, "trouble" if found.leading else "fine", tuple(sections))


def _both(found: TraceDifference) -> Bars:
    told = [found.buckets[name] for name in _LETTERS]
    old = tuple(it.old / 1e6 if it else 0.0 for it in told)
    new = tuple(it.new / 1e6 if it else 0.0 for it in told)
    bars = (Bar("old", old, f"{sum(old):,.4g} ms"), Bar("new", new, f"{sum(new):,.4g} ms"))
    return Bars("a mean step, by where its time goes", *_kinds(), bars)


def _differences(found: TraceDifference) -> Figures:
    rows = []
    for name, it in (("step", found.window), *found.buckets.items()):
        if it is not None:
            mark: Mark = "odd" if name == found.leading else ""
            figures = (f"{it.old / 1e6:,.3f}", f"{it.new / 1e6:,.3f}", f"{it.diff / 1e6:+,.3f}")
            rows.append((Cell(name), *(Cell(text, mark) for text in (*figures, _sure(it)))))
    heads = ("", "old", "new", "difference", "95 of 100")
    return Figures(heads, tuple(rows), "milliseconds of a mean step")


def _sure(it: BucketDifference) -> str:
    return "" if it.ci95 is None else f"{it.ci95[0] / 1e6:+,.3f} to {it.ci95[1] / 1e6:+,.3f}"


def _kernels(heading: str, kinds: Iterable[KernelDifference], window: BucketDifference) -> Iterator[Section]:
    told = [it for it in kinds if abs(it.diff_ns) >= _TELLS * window.old][:_MOST_KERNELS]
    rows = tuple(
        (
            it.name,
            f"{it.diff_ns / 1e6:+,.3f}",
            f"{it.by_count_ns / 1e6:+,.3f}",
            f"{it.by_length_ns / 1e6:+,.3f}",
        )
        for it in told
    )
    if rows:
        heads = ("", "difference", "by their number", "by their length")
        yield Section(heading, (Figures(heads, rows, "milliseconds in a step"),))


def _not_observed(found: TraceDifference) -> Iterator[str]:
    yield from (f"{name} is not known; its time is in {holder}" for name, holder in found.held_by.items())
    yield from remark_lines(found.degraded)
