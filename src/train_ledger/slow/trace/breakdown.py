"""Where did the time of each rank's steps go, by their traces?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from train_ledger.headway import tell
from train_ledger.slow.trace.activity import Activity, activity
from train_ledger.slow.trace.arrivals import Arrivals, arrivals
from train_ledger.slow.trace.buckets import (
    BUCKETS,
    HELD_BY,
    Buckets,
    buckets_of,
    time_by_cause,
    together,
)
from train_ledger.slow.trace.launching import Launching, launching, lost_launches
from train_ledger.slow.trace.pipeline import Schedule
from train_ledger.slow.trace.reading.trace import Trace, read_trace
from train_ledger.slow.trace.steps import Cut, Window, windows
from train_ledger.slow.trace.takings import rank_in_name

__all__ = [
    "Breakdown",
    "Degraded",
    "Options",
    "RankBreakdown",
    "TraceError",
    "breakdown",
]

_COUNTS = 0.03
_MUCH_UNEXPLAINED = 0.05
_MUCH_ASTRAY = 0.05


class TraceError(Exception):
    """Traces cannot be read or do not belong together; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """What could not be read or told of a trace; `lost` are events that are missing."""

    file: str
    why: str
    lost: int = 0


@dataclass(frozen=True, slots=True)
class RankBreakdown:
    """One rank: its steps, all of them together, and what its GPU did. `caused_ns` it made others wait.

    `bubble_by_schedule_ns` is how long the pipeline's schedule alone idles in these steps, None where none is
    given.
    """

    file: str
    windows: tuple[Window, ...]
    steps: tuple[Buckets, ...]
    total: Buckets
    activity: Activity
    trace: Trace
    caused_ns: int | None = None
    bubble_by_schedule_ns: int | None = None

    @property
    def bubble_excess_ns(self) -> int | None:
        """Bubble beyond the schedule's; None where either is not known."""
        told = self.total.buckets_ns["bubble"]
        if told is None or self.bubble_by_schedule_ns is None:
            return None
        return told - self.bubble_by_schedule_ns


@dataclass(frozen=True, slots=True)
class Breakdown:
    """All ranks; `held_by` says where the time of buckets is that the traces cannot tell."""

    ranks: Mapping[int, RankBreakdown]
    degraded: tuple[Degraded, ...]
    held_by: Mapping[str, str]
    arrivals: Arrivals

    @property
    def latecomer(self) -> int | None:
        """The rank for which the others waited most of their waiting, if that is a part that counts."""
        rank = self.arrivals.latest
        if rank is None:
            return None
        it = self.ranks[rank]
        whole_ns = it.total.window_ns or it.activity.span_ns
        return rank if (it.caused_ns or 0) >= _COUNTS * whole_ns else None


@dataclass(frozen=True, slots=True)
class Options:
    """`own_collectives` are patterns of kernels that communicate, `annotation` the mark of a step.

    `schedule` is that of the pipeline, to compare its bubble with.
    """

    own_collectives: tuple[re.Pattern[str], ...] = ()
    annotation: str = ""
    with_last: bool = False
    schedule: Schedule | None = None


def breakdown(paths: Sequence[Path], options: Options | None = None) -> Breakdown:
    """Break the steps of these traces down, one trace a rank.

    Raises TraceError for a file that cannot be read, two traces of one rank, and where no file is a trace.
    """
    options = options or Options()
    degraded: list[Degraded] = []
    traces = _by_rank(_traces_among(_read_all(paths, options), degraded), degraded)
    found = arrivals(traces)
    degraded += _of_arrivals(traces, found)
    ranks = {rank: _of_rank(rank, trace, options, found, degraded) for rank, trace in traces.items()}
    unknown = [name for name in BUCKETS if any(it.total.buckets_ns[name] is None for it in ranks.values())]
    return Breakdown(ranks, tuple(degraded), {name: HELD_BY[name] for name in unknown}, found)


def _read_all(paths: Sequence[Path], options: Options) -> list[Trace]:
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    traces: list[Trace] = []

    def told(read_bytes: int) -> None:
        tell("reading traces", sum(sizes[: len(traces)]) + read_bytes, sum(sizes), "bytes")

    for path in paths:
        traces.append(_read(path, options, told))
        told(0)
    return traces


def _traces_among(read: Sequence[Trace], degraded: list[Degraded]) -> list[Trace]:
    """Without files of something else, which a folder of traces may hold; those are told."""
    others = [Degraded(it.file, "; ".join(it.losses.in_words())) for it in read if not it.is_trace]
    if others and len(others) == len(read):
        more = f"; and {len(others) - 1} more such files" if len(others) > 1 else ""
        raise TraceError(f"{others[0].file}: {others[0].why}{more}")
    degraded += others
    return [it for it in read if it.is_trace]


def _read(path: Path, options: Options, told: Callable[[int], None]) -> Trace:
    try:
        return read_trace(
            path, own_collectives=options.own_collectives, annotation=options.annotation, progress=told
        )
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error


def _by_rank(traces: Iterable[Trace], degraded: list[Degraded]) -> dict[int, Trace]:
    found: dict[int, Trace] = {}
    unnamed: list[Trace] = []
    for trace in traces:
        rank = _rank_of(trace, degraded)
        if rank is None:
            unnamed.append(trace)
        elif rank in found:
            both = f"{found[rank].file} and {trace.file}: both are of rank {rank}"
            raise TraceError(f"{both}; name one of them, or compare them by train-ledger trace diff")
        else:
            found[rank] = trace
    for trace in unnamed:
        number = next(number for number in range(len(found) + 1) if number not in found)
        found[number] = trace
        if len(found) > 1 or len(unnamed) > 1:
            degraded.append(Degraded(trace.file, f"does not say its rank; it is shown as rank {number}"))
    return dict(sorted(found.items()))


def _rank_of(trace: Trace, degraded: list[Degraded]) -> int | None:
    """What the trace says, else its file's name; where both say, and not the same, that is told."""
    named = rank_in_name(Path(trace.file).name)
    if trace.rank is not None and named is not None and trace.rank != named:
        why = f"says that it is of rank {trace.rank}, its name says rank {named}; the first is taken"
        degraded.append(Degraded(trace.file, why))
    return named if trace.rank is None else trace.rank


def _of_arrivals(traces: Mapping[int, Trace], found: Arrivals) -> Iterable[Degraded]:
    files = " and ".join((*[trace.file for trace in traces.values()][:1], f"{len(traces) - 1} more"))
    world = max((trace.world_size or 0 for trace in traces.values()), default=0)
    if found.why and len(traces) > 1:
        yield Degraded(files, found.why)
    elif 1 < len(traces) < world:
        yield Degraded(files, f"of {len(traces)} of {world} ranks: who came last may be one of the others")
    if found.differing:
        why = f"{found.differing} collectives are not equally often in all traces of their group: left out"
        yield Degraded(files, why)


def _of_rank(
    rank: int, trace: Trace, options: Options, found: Arrivals, degraded: list[Degraded]
) -> RankBreakdown:
    told = found.by_rank.get(rank)
    launched = launching(trace)
    times = time_by_cause(trace, told.waits if told else None, launched)
    cut = windows(trace, launched, annotation=options.annotation, with_last=options.with_last)
    steps = tuple(buckets_of(times, window) for window in cut.windows)
    total, active = together(steps), activity(trace, launched)
    remarks = (*_lost(trace, launched), *_doubts(cut, total, active, trace))
    degraded += [Degraded(trace.file, why, lost) for why, lost in remarks]
    by_schedule = None if options.schedule is None else round(options.schedule.bubble * total.window_ns)
    caused_ns = told.caused_ns if told else None
    return RankBreakdown(trace.file, cut.windows, steps, total, active, trace, caused_ns, by_schedule)


def _lost(trace: Trace, launched: Launching) -> Iterable[tuple[str, int]]:
    """What is missing in a trace, and how many events of it."""
    reasons = trace.losses.in_words()
    for place, why in enumerate(reasons):
        yield why, trace.losses.events if place == len(reasons) - 1 else 0
    lost, asked = lost_launches(trace)
    if lost and len(trace.gpu):
        yield f"{lost} of {asked} launches ({lost / asked:.0%}) have no kernel: its recording lost some", lost
    unknown = len(trace.gpu) - int(launched.is_known.sum())
    if trace.steps and unknown:
        yield f"the launch of {unknown} of {len(trace.gpu)} activities was not recorded", 0
    early = int((launched.is_known & (trace.gpu.start < launched.at)).sum())
    if early:
        yield f"{early} activities begin before their launch: the clocks of host and GPU differ", 0


def _doubts(cut: Cut, total: Buckets, active: Activity, trace: Trace) -> Iterable[tuple[str, int]]:
    """What a person has to know before believing the figures."""
    if cut.remark:
        yield cut.remark, 0
    if cut.astray > _MUCH_ASTRAY:
        yield f"{cut.astray:.0%} of the GPU's work ran in the window of another step than launched it", 0
    if trace.gpus > 1:
        yield f"its process drives {trace.gpus} GPUs: what any one of them does counts for all", 0
    if (trace.world_size or 1) > 1 and len(trace.gpu) and not active.comm_ns:
        why = f"its job has {trace.world_size} ranks, but no communication is seen"
        yield f"{why}; name the kernels that communicate by --collectives", 0
    graph = total.other_parts_ns.get("graph", 0)
    if graph > _MUCH_UNEXPLAINED * total.window_ns > 0:
        why = "a graph had been launched and nothing of it is recorded: it may have computed"
        yield f"in {graph / total.window_ns:.0%} of the time {why}", 0
    unexplained = total.other_parts_ns.get("unexplained", 0)
    if unexplained > _MUCH_UNEXPLAINED * total.window_ns > 0:
        yield f"of {unexplained / total.window_ns:.0%} of the time the trace does not tell the cause", 0
