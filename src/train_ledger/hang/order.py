"""Whose order of operations departs from its peers', when ranks wait for each other?

In a circle of waits everybody waits for somebody, so absence tells nothing. What tells is the order: between
two operations of one kind of group, a rank issues so many in each other kind, step after step, and so do its
peers. Who left one out, or took one before its turn, has another count there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from train_ledger.hang.entry import Op
from train_ledger.hang.groups import GroupView, is_telling
from train_ledger.hang.laggards import Wait

__all__ = ["out_of_order"]

_Step = tuple[tuple[str, int], ...]
"""For each other kind of group, how many operations lie between two successive ones of this kind."""


def out_of_order(place: Mapping[int, Wait], views: Sequence[GroupView]) -> dict[int, str]:
    """Of the ranks of a circle, each with the wait it stands in, those that left the common order, and how.

    Empty where none or most of them did.
    """
    histories = _histories(views)
    odd = {
        rank: how
        for rank, wait in sorted(place.items())
        if not wait.p2p and (how := _departure(rank, wait, histories))
    }
    return odd if len(odd) * 2 <= len(place) else {}


_History = Mapping[str, Sequence[Op]]


def _histories(views: Sequence[GroupView]) -> dict[int, dict[str, Sequence[Op]]]:
    """For each rank whose dump is whole, what it keeps by kind; a kind that a rank has twice goes by name."""
    histories: dict[int, dict[str, Sequence[Op]]] = {}
    counts = Counter((rank, view.group.desc) for view in views for rank in view.standings)
    for view in views:
        for rank, standing in view.standings.items():
            if standing.held and not standing.cut:
                histories.setdefault(rank, {})[_kind(view, counts[rank, view.group.desc])] = standing.held.ops
    return histories


def _kind(view: GroupView, groups_of_desc: int) -> str:
    return view.group.desc if groups_of_desc == 1 and is_telling(view.group.desc) else view.group.name


def _departure(rank: int, wait: Wait, histories: Mapping[int, _History]) -> str | None:
    """In words, where its step to its place is neither that of its peers nor the one it took before."""
    history = histories.get(rank, {})
    kind = next((it for it, ops in history.items() if wait.view.standings[rank].held_ops is ops), None)
    own = _step(history, kind, wait.seq) if kind else None
    if kind is None or own is None:
        return None
    before = _step(history, kind, wait.seq - 1)
    usual = _most([step for it in histories.values() if (step := _step(it, kind, wait.seq)) is not None])
    if own in (before, usual) or (before is None and usual is None):
        return None
    return _in_words(rank, wait, own, usual or before or ())


def _in_words(rank: int, wait: Wait, own: _Step, usual: _Step) -> str:
    counts = dict(usual)
    parts = [
        f"{count} in {kind} where {counts[kind]} are usual"
        for kind, count in own
        if counts.get(kind, count) != count
    ]
    between = f"between numbers {wait.seq - 1} and {wait.seq} of {wait.view.label}"
    return f"{between} rank {rank} issued {', '.join(parts) or 'other operations than usual'}"


def _most(steps: Collection[_Step]) -> _Step | None:
    counts = Counter(steps)
    step, votes = counts.most_common(1)[0]
    return step if votes * 2 > len(steps) and len(steps) > 2 else None


def _step(history: _History, kind: str, seq: int) -> _Step | None:
    """None where the dump does not keep both operations, or nothing of another kind before them."""
    ops = history.get(kind, ())
    here = next((op for op in ops if op.seq == seq), None)
    before = next((op for op in ops if op.seq == seq - 1), None)
    if here is None or before is None:
        return None
    counts = []
    for other, listed in sorted(history.items()):
        reached = [_reached(listed, op.record) for op in (before, here)]
        if other != kind and None not in reached:
            counts.append((other, (reached[1] or 0) - (reached[0] or 0)))
    return tuple(counts)


def _reached(ops: Sequence[Op], record: int) -> int | None:
    return max((op.seq for op in ops if op.record < record), default=None)
