"""Which operations had failed, where the recorder only says that they are over?

gloo takes an operation that timed out, or whose peer went away, off its list as it does one that is done. The
last operation of a rank that raised because of its peers is such a one, if a member never came to it: it is
open again. A member that never came, but raised because of its peers as well, was held up in something that
is not recorded; one of many that ended by their own word had no more to do. Of these it is not known.
One that came when the others had waited for as long as they may, came too late.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec.structs import replace as with_changes

from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.knowledge import RankKnowledge
from train_ledger.hang.reasoning.groups import GroupView, Standing
from train_ledger.hang.reasoning.mismatch import find_mismatch
from train_ledger.render import ranks_in_brief

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
    victims = {rank for rank, it in known.items() if _was_thrown_out(it) and rank not in fallen}
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


def _was_thrown_out(rank: RankKnowledge) -> bool:
    return rank.exception is not None and not rank.raised_as_ended


def _reopened(
    view: GroupView, failed: Sequence[int], known: Mapping[int, RankKnowledge], victims: Collection[int]
) -> GroupView:
    if find_mismatch(view, ended=True):
        return view
    open_at = {rank: view.standings[rank].held_ops[-1].seq for rank in failed}
    if came_late := _came_late(view, open_at, known):
        return _without_late(view, open_at, came_late)
    lacking_at = {
        seq: {rank for rank, standing in view.standings.items() if standing.reached(seq) is False}
        for seq in {*open_at.values()}
    }
    lacking = set().union(*lacking_at.values())
    if not lacking:
        return view
    left = {rank for rank in lacking if rank in known and known[rank].ended and rank not in victims}
    many_left = len(left) * 2 >= len(view.group.ranks)
    standings = dict(view.standings)
    for rank, seq in open_at.items():
        if lacking_at[seq]:
            standings[rank] = _open(standings[rank], seq)
    for rank in lacking:
        if standings[rank].lowest_pending is None and (rank in victims or (rank in left and many_left)):
            standings[rank] = replace(standings[rank], cut=True)
    waiting = tuple(rank for rank, standing in standings.items() if standing.has_pending)
    return replace(view, standings=standings, waiting=waiting)


def _came_late(
    view: GroupView, open_at: Mapping[int, int], known: Mapping[int, RankKnowledge]
) -> dict[int, float]:
    """Few ranks that came when the others had given up already → how many seconds after the first."""
    limits = [
        float(found[1]) / 1000 for rank in open_at if (found := _TIMEOUT.search(known[rank].exception or ""))
    ]
    seq = max(open_at.values())
    ops = {
        rank: op for rank, standing in view.standings.items() if (op := standing.op(seq)) and op.created_ns
    }
    if not limits or len(ops) < len(view.group.ranks):
        return {}
    first = min(op.created_ns for op in ops.values())
    after_s = {rank: (op.created_ns - first) / 1e9 for rank, op in ops.items()}
    late = {rank: seconds for rank, seconds in after_s.items() if seconds > 0.9 * min(limits)}
    return late if 2 * len(late) < len(ops) else {}


_TIMEOUT = re.compile(r"(?i)timed? ?out\D{0,40}?(\d{1,9}) ?ms")


def _without_late(view: GroupView, open_at: Mapping[int, int], came_late: Mapping[int, float]) -> GroupView:
    seq = max(open_at.values())
    standings = dict(view.standings)
    for rank in view.standings:
        standings[rank] = _before(standings[rank], seq) if rank in came_late else _open(standings[rank], seq)
    waiting = tuple(rank for rank, standing in standings.items() if standing.has_pending)
    return replace(view, standings=standings, waiting=waiting, came_late=dict(came_late))


def _before(standing: Standing, seq: int) -> Standing:
    assert standing.held is not None  # noqa: S101 – its operations were looked at
    ops = tuple(op for op in standing.held.ops if op.seq < seq)
    return replace(
        standing, held=with_changes(standing.held, ops=ops, highest=ops[-1].seq if ops else seq - 1)
    )


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
                f"number {highest} of {view.label}: {ranks_in_brief(lacking)} did not come to it; whether "
                "the others finished it or gave it up, gloo does not record"
            )
