"""Who came last to each collective, and how long did the others wait for it?

All ranks of a collective such as an all-reduce leave it at the same moment, so the ends of the collectives
that ranks have in common tell by how much their clocks differ. What is left of the differences is how well
that is known; no wait shorter than three times this is told as one, and nobody is blamed below it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.intervals import Intervals, nothing, union
from train_ledger.slow.trace.reading.names import GpuClass, is_sync_collective
from train_ledger.slow.trace.reading.trace import Trace

__all__ = ["Arrivals", "Straggling", "arrivals"]

_FEWEST_IN_COMMON = 3
_MANY_UNCERTAINTIES = 3


class _Call(NamedTuple):
    """One rank's part in a collective: the place of its kernel in `Trace.gpu`."""

    start: int
    end: int
    place: int


@dataclass(frozen=True, slots=True)
class Straggling:
    """What one rank waited for others, as a set of time on its own clock, and made them wait.

    `caused_ns` is by how much it came later than the median of its group, over all collectives in which it
    came last; `last` is how often that was.
    """

    waits: Intervals
    caused_ns: int
    last: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """`by_rank` is None for ranks of which nothing can be said; `why` says so, "" where all is known.

    `offset_ns` is by how much each rank's clock is ahead of the others', `uncertainty_ns` how well that is
    known.
    """

    by_rank: Mapping[int, Straggling | None]
    offset_ns: Mapping[int, int]
    uncertainty_ns: int
    collectives: int
    why: str = ""


def arrivals(traces: Mapping[int, Trace]) -> Arrivals:
    """When ranks arrived at the collectives that they have in common, corrected for their clocks."""
    common = _in_common({rank: _calls(trace) for rank, trace in traces.items()})
    nobody = dict.fromkeys(traces)
    if len(traces) < 2:
        return Arrivals(nobody, {}, 0, 0, "who came last takes the traces of at least two ranks")
    if len(common) < _FEWEST_IN_COMMON:
        return Arrivals(nobody, {}, 0, len(common), "these ranks have too few collectives in common")
    ranks = sorted(traces)
    ends = _table(common, ranks, lambda call: call.end)
    offsets = np.nan_to_num(np.nanmedian(ends - np.nanmedian(ends, axis=0), axis=1))
    left = ends - offsets[:, None] - np.nanmedian(ends - offsets[:, None], axis=0)
    uncertainty_ns = int(np.nanmax(1.4826 * np.nanmedian(np.abs(left), axis=1)))  # of the worst clock
    starts = _table(common, ranks, lambda call: call.start) - offsets[:, None]
    told = _straggling(common, ranks, starts, offsets, _MANY_UNCERTAINTIES * uncertainty_ns)
    by_rank = {rank: told.get(rank) for rank in ranks}
    return Arrivals(by_rank, dict(zip(ranks, map(int, offsets), strict=True)), uncertainty_ns, len(common))


_Calls = Mapping[tuple[object, ...], Sequence[_Call]]


def _calls(trace: Trace) -> _Calls:
    """Collectives that end together, in their order, by group and kind, or else by the kernel's name."""
    found: dict[tuple[object, ...], list[_Call]] = defaultdict(list)
    for place in np.flatnonzero(trace.gpu.kind == GpuClass.COMMUNICATION).tolist():
        told = trace.collectives.get(place)
        name = told.name if told else trace.names[int(trace.gpu.name[place])]
        if is_sync_collective(name):
            key = (told.group, told.name, told.elements) if told else (name,)
            call = _Call(int(trace.gpu.start[place]), int(trace.gpu.end[place]), place)
            found[key].append(call)
    return found


def _in_common(calls: Mapping[int, _Calls]) -> list[dict[int, _Call]]:
    """Each collective with the ranks that took part; only of kinds that all who know them had as often.

    Where the counts differ the recordings began or ended at other places, and which call is which is a guess.
    """
    kinds: dict[tuple[object, ...], dict[int, Sequence[_Call]]] = defaultdict(dict)
    for rank, known in calls.items():
        for key, listed in known.items():
            kinds[key][rank] = listed
    found: list[dict[int, _Call]] = []
    for of_ranks in kinds.values():
        counts = [len(listed) for listed in of_ranks.values()]
        if len(of_ranks) > 1 and min(counts) == max(counts):
            found += [
                {rank: listed[number] for rank, listed in of_ranks.items()} for number in range(counts[0])
            ]
    return found


def _table(
    common: Iterable[Mapping[int, _Call]], ranks: Sequence[int], read: Callable[[_Call], int]
) -> npt.NDArray[np.float64]:
    """Rows are ranks and columns collectives; relative to the first moment, so that floats are exact."""
    listed = list(common)
    first = min(call.start for each in listed for call in each.values())
    table = np.full((len(ranks), len(listed)), np.nan)
    for column, each in enumerate(listed):
        for row, rank in enumerate(ranks):
            if rank in each:
                table[row, column] = read(each[rank]) - first
    return table


def _straggling(
    common: Sequence[Mapping[int, _Call]],
    ranks: Sequence[int],
    starts: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.float64],
    least_ns: float,
) -> dict[int, Straggling]:
    last = np.nanmax(starts, axis=0)
    who = np.nanargmax(starts, axis=0)
    late = last - np.nanmedian(starts, axis=0)
    counts = (last - np.nanmin(starts, axis=0)) > least_ns
    found: dict[int, Straggling] = {}
    for row, rank in enumerate(ranks):
        waits = []
        for column in np.flatnonzero(counts & ~np.isnan(starts[row])).tolist():
            call = common[column][rank]
            waited = int(last[column] - starts[row, column])
            if waited > least_ns:
                waits.append((call.start, min(call.start + waited, call.end)))
        mine = counts & (who == row)
        caused_ns = int(late[mine].sum())
        set_of = union([a for a, _ in waits], [b for _, b in waits]) if waits else nothing()
        found[rank] = Straggling(set_of, caused_ns, int(mine.sum()))
    return found
