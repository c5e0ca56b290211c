"""Which operations had failed, where the recorder only says that they are over?

gloo takes an operation that timed out, or whose peer went away, off its list as it does one that is done. The
last operation of a rank that raised because of its peers is such a one, if a member never came to it: it is
open again. A member that never came, but raised because of its peers as well, was held up in something that
is not recorded; one of many that ended by their own word had no more to do. Of these it is not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec.structs import replace as with_changes

from train_ledger.hang.dump import Dump
from train_ledger.hang.groups import GroupView, Standing
from train_ledger.hang.knowledge import RankKnowledge
from train_ledger.hang.mismatch import find_mismatch
from train_ledger.render import ranks_in_words

__all__ = ["left_open", "reopened"]

_ENDS_WHEN_IT_FAILS = ("gloo",)


def reopened(
    views: Sequence[GroupView],
    dumps: Sequence[Dump],
    known: Mapping[int, RankKnowledge],
    fallen: Collection[int],
) -> list[GroupView]:
    """The same groups; what failed is pending in them."""
    waiting = {rank for view in views for rank in view.waiting}
    victims = {rank for rank, it in known.items() if it.exception and rank not in fallen}
    last = {dump.rank: dump.last for dump in dumps if dump.last and dump.rank in victims - waiting}
    failed: dict[int, list[int]] = {}
    for place, view in enumerate(views):
        for rank, op in last.items():
            standing = view.standings.get(rank)
            ends = standing.held_ops[-1:] if standing else ()
            if (
                op.backend in _ENDS_WHEN_IT_FAILS
                and ends
                and (ends[0].record, ends[0].seq) == (op.record, op.seq)
            ):
                failed.setdefault(place, []).append(rank)
    return [
        _reopened(view, failed[place], known, victims) if place in failed else view
        for place, view in enumerate(views)
    ]


def _reopened(
    view: GroupView, failed: Sequence[int], known: Mapping[int, RankKnowledge], victims: Collection[int]
) -> GroupView:
    if find_mismatch(view, ended=True):
        return view
    open_at = {rank: view.standings[rank].held_ops[-1].seq for rank in failed}
    lacking = {
        rank
        for rank, standing in view.standings.items()
        if any(standing.reached(seq) is False for seq in open_at.values())
    }
    if not lacking:
        return view
    left = {rank for rank in lacking if rank in known and known[rank].ended and rank not in victims}
    many_left = len(left) * 2 >= len(view.group.ranks)
    standings = dict(view.standings)
    for rank, seq in open_at.items():
        if any(standings[it].reached(seq) is False for it in lacking):
            standings[rank] = _open(standings[rank], seq)
    for rank in lacking:
        if standings[rank].lowest_pending is None and (rank in victims or (rank in left and many_left)):
            standings[rank] = replace(standings[rank], cut=True)
    waiting = tuple(rank for rank, standing in standings.items() if standing.has_pending)
    return replace(view, standings=standings, waiting=waiting)


def _open(standing: Standing, seq: int) -> Standing:
    assert standing.held is not None  # noqa: S101 – its operations were looked at
    ops = tuple(with_changes(op, done=op.done and op.seq != seq) for op in standing.held.ops)
    return replace(standing, held=with_changes(standing.held, ops=ops, lowest_pending=seq))


def left_open(views: Sequence[GroupView]) -> Iterator[str]:
    """In words, where members lack what others ended, and nothing tells whether they were done."""
    for view in views:
        reached = {
            rank: standing.held.highest
            for rank, standing in view.standings.items()
            if standing.held and standing.held.highest is not None and not standing.cut
        }
        backends = {standing.held.backend for standing in view.standings.values() if standing.held}
        highest = max(reached.values(), default=0)
        lacking = [rank for rank, seq in reached.items() if seq < highest]
        if lacking and not view.waiting and backends <= set(_ENDS_WHEN_IT_FAILS):
            yield (
                f"number {highest} of {view.label}: {ranks_in_words(lacking)} did not come to it; whether "
                "the others finished it or gave it up, gloo does not record"
            )
