"""What stands at the head of each rank's queue, before everything else that is pending on it?

A rank issues one operation after the other, and its GPU takes them in that order. What is pending behind
another operation need not have a reason of its own; what is at the head has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.laggards import Wait

__all__ = ["at_head", "oldest_pending", "stands_by_itself"]

Heads = Mapping[int, int]
"""The record id of each rank's oldest pending operation."""


def oldest_pending(views: Sequence[GroupView]) -> Heads:
    """The heads of all ranks for which anything is pending."""
    oldest: dict[int, int] = {}
    for view in views:
        for rank in view.waiting:
            standing = view.standings[rank]
            ops = [op for op in standing.held_ops if not op.done][:1]
            pairs = list(standing.held.p2p[:1]) if standing.held else []
            for op in (*ops, *pairs):
                oldest[rank] = min(op.record, oldest.get(rank, op.record))
    return oldest


def at_head(wait: Wait, heads: Heads) -> list[int]:
    """The waiters that have nothing older pending."""
    return [rank for rank in wait.waiters if _record(wait, rank) == heads.get(rank)]


def stands_by_itself(wait: Wait, heads: Heads) -> bool:
    """Whether all members came to a collective, nothing older is pending on any of them, and it stands.

    No rank outside the group can be the reason.
    """
    if wait.p2p or wait.unknown or wait.targets or wait.view.group.inferred:
        return False
    held = [it.held for it in wait.view.standings.values()]
    return len(at_head(wait, heads)) == len(wait.view.group.ranks) and all(it and it.exact for it in held)


def _record(wait: Wait, rank: int) -> int | None:
    op = wait.op if wait.p2p else wait.view.standings[rank].op(wait.seq)
    return op.record if op else None
