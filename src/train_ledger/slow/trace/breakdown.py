"""Where did the time of each rank's steps go, by their traces?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from train_ledger.slow.trace.activity import Activity, activity
from train_ledger.slow.trace.arrivals import Arrivals, arrivals
from train_ledger.slow.trace.buckets import BUCKETS, HELD_BY, Buckets, buckets_of, time_by_cause
from train_ledger.slow.trace.launching import launching
from train_ledger.slow.trace.reading.trace import Trace, read_trace
from train_ledger.slow.trace.steps import Window, windows

__all__ = ["Breakdown", "Degraded", "Options", "RankBreakdown", "TraceError", "breakdown", "together"]

_RANK_IN_NAME = re.compile(r"(?:rank|worker)[-_ ]?(\d{1,7})(?!\d)", re.IGNORECASE)


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
    """One rank: its steps, all of them together, and what its GPU did. `caused_ns` it made others wait."""

    file: str
    windows: tuple[Window, ...]
    steps: tuple[Buckets, ...]
    total: Buckets
    activity: Activity
    trace: Trace
    caused_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """All ranks; `held_by` says where the time of buckets is that the traces cannot tell."""

    ranks: Mapping[int, RankBreakdown]
    degraded: tuple[Degraded, ...]
    held_by: Mapping[str, str]
    arrivals: Arrivals


@dataclass(frozen=True, slots=True)
class Options:
    """`own_collectives` are patterns of kernels that communicate, `annotation` the mark of a step."""

    own_collectives: tuple[re.Pattern[str], ...] = ()
    annotation: str = ""
    with_last: bool = False


def breakdown(
    paths: Sequence[Path],
    options: Options | None = None,
    progress: Callable[[Path, int], None] | None = None,
) -> Breakdown:
    """Break the steps of these traces down, one trace a rank; `progress` is told the bytes read of each.

    Raises TraceError for a file that cannot be read, two traces of one rank, and where nothing is in them.
    """
    options = options or Options()
    degraded: list[Degraded] = []
    traces = _by_rank([_read(path, options, progress) for path in paths], degraded)
    found = arrivals(traces)
    if found.why and len(traces) > 1:
        degraded.append(Degraded(", ".join(trace.file for trace in traces.values()), found.why))
    ranks = {rank: _of_rank(rank, trace, options, found, degraded) for rank, trace in traces.items()}
    unknown = [name for name in BUCKETS if any(it.total.buckets_ns[name] is None for it in ranks.values())]
    return Breakdown(ranks, tuple(degraded), {name: HELD_BY[name] for name in unknown}, found)


def _read(path: Path, options: Options, progress: Callable[[Path, int], None] | None) -> Trace:
    told = (lambda read_bytes: progress(path, read_bytes)) if progress else None
    try:
        return read_trace(path, own_collectives=options.own_collectives, progress=told)
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
            raise TraceError(f"{found[rank].file} and {trace.file}: both are of rank {rank}; give one a rank")
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
    in_name = _RANK_IN_NAME.findall(Path(trace.file).name)
    named = int(in_name[-1]) if in_name else None
    if trace.rank is not None and named is not None and trace.rank != named:
        why = f"says that it is of rank {trace.rank}, its name says rank {named}; the first is taken"
        degraded.append(Degraded(trace.file, why))
    return named if trace.rank is None else trace.rank


def _of_rank(
    rank: int, trace: Trace, options: Options, found: Arrivals, degraded: list[Degraded]
) -> RankBreakdown:
    told = found.by_rank.get(rank)
    times = time_by_cause(trace, told.waits if told else None)
    launched = launching(trace)
    cut = windows(trace, launched, annotation=options.annotation, with_last=options.with_last)
    steps = tuple(buckets_of(times, window) for window in cut.windows)
    degraded += [Degraded(trace.file, why) for why in trace.losses.in_words()[:-1]]
    if trace.losses.by_reason:
        degraded.append(Degraded(trace.file, trace.losses.in_words()[-1], trace.losses.events))
    if cut.remark:
        degraded.append(Degraded(trace.file, cut.remark))
    degraded += _launches_lost(trace, launched.is_known.size, int(launched.is_known.sum()))
    return RankBreakdown(
        trace.file,
        cut.windows,
        steps,
        together(steps),
        activity(trace),
        trace,
        told.caused_ns if told else None,
    )


def _launches_lost(trace: Trace, activities: int, known: int) -> Iterable[Degraded]:
    if trace.steps and activities and known < activities:
        lost = activities - known
        yield Degraded(trace.file, f"the launch of {lost} of {activities} activities was not recorded")


def together(steps: Sequence[Buckets]) -> Buckets:
    """The sum of several windows; a bucket that one of them does not know is not known."""
    sums: dict[str, int | None] = {}
    for name in BUCKETS:
        values = [step.buckets_ns[name] for step in steps]
        known = [value for value in values if value is not None]
        sums[name] = sum(known) if len(known) == len(values) and values else None if values else 0
    parts = {name: sum(step.host_parts_ns[name] for step in steps) for name in _parts_of(steps)}
    return Buckets(None, sum(step.window_ns for step in steps), sums, parts)


def _parts_of(steps: Sequence[Buckets]) -> Iterable[str]:
    return steps[0].host_parts_ns if steps else ()
