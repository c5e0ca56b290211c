"""Who came last to each collective, and how long did the others wait for it?

All ranks of a collective such as an all-reduce leave it at the same moment, so the ends of the collectives
that ranks have in common tell by how much their clocks differ. What is left of the differences is how well
that is known; no wait shorter than three times this is told as one, and nobody is blamed below it. Nor by a
collective whose own ends lie half as far apart: a clock was set in between, or not all left it together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.calls import Call, common_calls
from train_ledger.slow.trace.intervals import Intervals, nothing, union
from train_ledger.slow.trace.reading.trace import Trace

__all__ = ["Arrivals", "Straggling", "arrivals"]

_FEWEST_IN_COMMON = 3
_MANY_UNCERTAINTIES = 3
_MANY_APART = 2
_MOST_OF_ALL = 2 / 3
_FEWEST_TO_BLAME = 3

_OF_MAD = 1.4826
"""Times a median deviation is a standard deviation; its own, so that a trace is read without the ledger."""


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
    known. `differing` are collectives that were left out, since not all who know them had them as often.
    """

    by_rank: Mapping[int, Straggling | None]
    offset_ns: Mapping[int, int] = field(default_factory=dict)
    uncertainty_ns: int = 0
    collectives: int = 0
    differing: int = 0
    why: str = ""

    @property
    def latest(self) -> int | None:
        """The rank that caused most of all waiting, by coming last again and again; None where none did."""
        known = {rank: it for rank, it in self.by_rank.items() if it is not None}
        caused_ns = sum(it.caused_ns for it in known.values())
        if not caused_ns:
            return None
        rank, most = max(known.items(), key=lambda item: item[1].caused_ns)
        stands_out = most.caused_ns >= _MOST_OF_ALL * caused_ns and most.last >= _FEWEST_TO_BLAME
        return rank if stands_out else None


def arrivals(traces: Mapping[int, Trace]) -> Arrivals:
    """When ranks arrived at the collectives that they have in common, corrected for their clocks."""
    nobody = dict.fromkeys(traces)
    if len(traces) < 2:
        return Arrivals(nobody, why="who came last takes the traces of at least two ranks")
    common, differing, why = common_calls(traces)
    if len(common) < _FEWEST_IN_COMMON:
        why = why or "these ranks have too few collectives in common"
        return Arrivals(nobody, collectives=len(common), differing=differing, why=why)
    ranks = sorted(traces)
    starts, ends = _tables(common, ranks)
    offsets = _offsets(ends)
    starts, left = starts - offsets[:, None], ends - offsets[:, None]
    left -= np.nanmedian(left, axis=0)
    takes_part = np.logical_not(np.isnan(ends).all(axis=1)).tolist()
    worst = np.nanmedian(np.abs(left[takes_part]), axis=1).max()
    uncertainty_ns = int(np.ceil(_OF_MAD * worst))
    apart = np.nanmax(left, axis=0) - np.nanmin(left, axis=0)
    least = np.maximum(_MANY_UNCERTAINTIES * uncertainty_ns, _MANY_APART * apart)
    told = _straggling(common, ranks, starts, least)
    return Arrivals(
        {rank: told[rank] if part else None for rank, part in zip(ranks, takes_part, strict=True)},
        {rank: int(it) for rank, it, part in zip(ranks, offsets, takes_part, strict=True) if part},
        uncertainty_ns,
        len(common),
        differing,
    )


def _tables(
    common: Sequence[Mapping[int, Call]], ranks: Sequence[int]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Starts and ends, a row a rank and a column a collective; from the first moment on: floats are exact."""
    first = min(call.at for each in common for call in each.values())
    starts, ends = (np.full((len(ranks), len(common)), np.nan) for _ in range(2))
    rows = {rank: row for row, rank in enumerate(ranks)}
    for column, each in enumerate(common):
        for rank, call in each.items():
            starts[rows[rank], column] = call.at - first
            ends[rows[rank], column] = call.at - first + call.end - call.start
    return starts, ends


def _offsets(ends: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """By how much each clock is ahead of the mean; where groups are small, one tells of the next.

    For every group g and member r: offset(r) − the mean offset of g = the median, over the collectives of g,
    of how much later than the mean of g its clock says that r ended; of all these the least squares.
    """
    takes_part = np.logical_not(np.isnan(ends))
    groups, group_of = np.unique(takes_part, axis=1, return_inverse=True)
    rows, known = [], []
    for number in range(groups.shape[1]):
        members = np.flatnonzero(groups[:, number])
        of_group = ends[np.ix_(members, np.flatnonzero(group_of.ravel() == number))]
        row = np.zeros((len(members), len(ends)))
        row[:, members] = np.eye(len(members)) - 1 / len(members)
        rows.append(row)
        known.append(np.median(of_group - of_group.mean(axis=0), axis=1))
    found: npt.NDArray[np.float64] = np.linalg.lstsq(np.vstack(rows), np.concatenate(known), rcond=None)[0]
    return np.rint(found)


def _straggling(
    common: Sequence[Mapping[int, Call]],
    ranks: Sequence[int],
    starts: npt.NDArray[np.float64],
    least: npt.NDArray[np.float64],
) -> dict[int, Straggling]:
    """By rank; in each collective waits count that are longer than the `least` of it."""
    last, who = np.nanmax(starts, axis=0), np.nanargmax(starts, axis=0)
    late = last - np.nanmedian(starts, axis=0)
    counts = (last - np.nanmin(starts, axis=0)) > least
    found: dict[int, Straggling] = {}
    for row, rank in enumerate(ranks):
        waits = []
        waited_ns = last - starts[row]
        for column in np.flatnonzero(counts & (np.nan_to_num(waited_ns) > least)).tolist():
            call = common[column][rank]
            waits.append((call.start, min(call.start + int(waited_ns[column]), call.end)))
        mine = counts & (who == row) & (late > least / 2)
        set_of = union([a for a, _ in waits], [b for _, b in waits]) if waits else nothing()
        found[rank] = Straggling(set_of, int(late[mine].sum()), int(mine.sum()))
    return found
