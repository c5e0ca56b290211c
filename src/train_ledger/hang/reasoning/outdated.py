"""Which dumps are not of the same attempt as the others, or were written before the job went on?

A collective that needs all its members cannot have completed on one before another issued it. Where a dump
lacks what others completed, one of the two is of another time: the one that ends earlier. And where most
dumps list one world, a dump that lists another is of an attempt with more or fewer ranks, or of another job.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import median_low

from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.entry import Op
from train_ledger.hang.dumps.group_table import ascending, ranks_in
from train_ledger.hang.reasoning.groups import GroupView, Standing
from train_ledger.hang.reasoning.laggards import ROOTED

__all__ = ["of_another_world", "outdated"]

_CLOCKS_DIFFER_NS = 60 * 10**9
_FAR = 8
_ENOUGH = 3


def outdated(views: Sequence[GroupView], dumps: Sequence[Dump]) -> frozenset[int]:
    """The ranks whose dump is not to be reasoned with; nobody where these would be half of all, or more."""
    newest = {dump.rank: dump.newest_ns for dump in dumps}
    found = {rank for view in views for rank in (*_contradicting(view, newest), *_elsewhere(view, newest))}
    return frozenset(found) if 2 * len(found) < len(dumps) else frozenset()


def of_another_world(dumps: Sequence[Dump]) -> frozenset[int]:
    """The ranks whose dump lists other ranks for the default group than more than half of all do."""
    worlds = {dump.rank: world for dump in dumps if (world := _world(dump))}
    most, votes = Counter(worlds.values()).most_common(1)[0] if worlds else ("", 0)
    if votes * 2 <= len(worlds):
        return frozenset()
    return frozenset(rank for rank, world in worlds.items() if world != most)


def _world(dump: Dump) -> str:
    for name, (desc, listed) in dump.config.items():
        if (desc == "default_pg" or (name == "0" and not desc)) and ranks_in(listed):
            return ascending(listed)
    return ""


def _contradicting(view: GroupView, newest: Mapping[int, int]) -> Iterator[int]:
    completed = {rank: seq for rank, it in view.standings.items() if (seq := _completed(it)) is not None}
    ahead = sorted(completed, key=lambda rank: completed[rank])
    numbers = [completed[rank] for rank in ahead]
    newest_from = [*accumulate((newest[rank] for rank in reversed(ahead)), max)][::-1]
    highest = numbers[-1] if numbers else -1
    from_place = len(ahead)
    for rank, standing in view.standings.items():
        own = standing.held.highest if standing.held else None
        if own is None or own >= highest or standing.cut or standing.reached(highest) is not False:
            continue
        place = bisect_right(numbers, own)
        if newest[rank] > newest_from[place] + _CLOCKS_DIFFER_NS:
            from_place = min(from_place, place)
        else:
            yield rank
    yield from ahead[from_place:]


def _elsewhere(view: GroupView, newest: Mapping[int, int]) -> Iterator[int]:
    """Whose first pending number is far from that of most, who issued theirs long after its dump ends.

    Dumps of active entries alone do not show what completed; but no rank is further than one number ahead of
    a member that hangs.
    """
    pending = {
        rank: (op.seq, op.created_ns)
        for rank, standing in view.standings.items()
        if standing.lowest_pending is not None and (op := standing.op(standing.lowest_pending))
    }
    if len(pending) < _ENOUGH:
        return
    usual = median_low(seq for seq, _ in pending.values())
    issued = median_low(created for _, created in pending.values())
    for rank, (seq, _) in pending.items():
        if abs(seq - usual) > _FAR and newest[rank] + _CLOCKS_DIFFER_NS < issued:
            yield rank


def _completed(standing: Standing) -> int | None:
    """The highest number that is over on this rank, and cannot be without all members."""
    return max((op.seq for op in standing.held_ops if _needed_all(op)), default=None)


def _needed_all(op: Op) -> bool:
    return op.done and op.state == "completed" and op.name not in ROOTED
