"""Whose GPU has not begun what the GPUs of its peers are in?

Where the recorder times operations (TORCH_NCCL_ENABLE_TIMING=1), one that runs is `started`, one that is
queued is `scheduled`. When all members came, most run it and wait, and few have it at the head of their queue
without running it, these GPUs stand in something else: a kernel of the model, or a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from train_ledger.hang.reasoning.cause import Root
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.heads import oldest_pending
from train_ledger.hang.reasoning.laggards import Wait

__all__ = ["unstarted"]


def unstarted(waits: Sequence[Wait], views: Sequence[GroupView]) -> list[Root]:
    """A cause for each such wait; `waits` are those in which all members came."""
    return list(_found(waits, oldest_pending(views)))


def _found(waits: Sequence[Wait], oldest: Mapping[int, int]) -> Iterator[Root]:
    for wait in waits:
        if wait.p2p or wait.unknown or wait.targets:
            continue
        ops = {rank: op for rank in wait.waiters if (op := wait.view.standings[rank].op(wait.seq))}
        running = [rank for rank, op in ops.items() if op.state == "started"]
        idle = tuple(
            rank for rank, op in ops.items() if op.state == "scheduled" and op.record <= oldest[rank]
        )
        if idle and len(idle) < len(running) and len(idle) + len(running) == len(wait.view.group.ranks):
            op = ops[idle[0]]
            yield Root("completion_laggard", idle, wait.view, wait.seq, op, tuple(running), why=(_WHY,))


_WHY = (
    "its GPU has not begun the operation, which runs on the GPUs of all others: it stands in something before"
)
