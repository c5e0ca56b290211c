"""What is known of all ranks when causes are looked for, and what of it bears on one cause?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from train_ledger.hang.dumps.dump import Dump, Op
from train_ledger.hang.knowledge import RankKnowledge
from train_ledger.hang.reasoning.roots import Root
from train_ledger.hang.stacks import RankStack, stand_of
from train_ledger.hang.verdict.causes import Shape, Shift, Signs, Suspicion, suspect

__all__ = ["Evidence", "suspicion_of", "with_failed_gpu"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that is known of the ranks, each keyed by rank.

    `damaged` are ranks whose dump could not be read, `set_aside` those whose dump is of another time;
    `newest_ns` is when the newest operation of all was issued, in unix nanoseconds.
    """

    dumps: Mapping[int, Dump]
    stacks: Mapping[int, RankStack]
    known: Mapping[int, RankKnowledge]
    fallen: Sequence[int] = ()
    damaged: Collection[int] = ()
    set_aside: Collection[int] = ()
    newest_ns: int = 0


def suspicion_of(root: Root, evidence: Evidence) -> Suspicion:
    """The usual cause that fits what is known of the first culprit."""
    first = next(iter(root.culprits or with_failed_gpu(root, evidence)), None)
    stack = evidence.stacks.get(first) if first is not None else None
    usual = root.mismatch.usual if root.mismatch else None
    signs = Signs(
        kind=root.kind,
        op=root.op.name,
        others_op=usual.name if usual else None,
        stand=stand_of(stack) if stack else None,
        rank=evidence.known.get(first) if first is not None else None,
        fell=first in evidence.fallen,
        sizes=_sizes(root),
        shift=_shift(root),
    )
    return suspect(signs)


def with_failed_gpu(root: Root, evidence: Evidence) -> list[int]:
    """Members of the group whose GPU reported a fault that stops work."""
    return [
        rank
        for rank in root.view.group.ranks
        if (it := evidence.known.get(rank)) and any(fault.level == "page" for fault in it.gpu_faults)
    ]


def _sizes(root: Root) -> tuple[Shape, Shape] | None:
    if root.mismatch is None or root.mismatch.usual is None or not root.culprits:
        return None
    return root.mismatch.odd.input_sizes, root.mismatch.usual.input_sizes


def _shift(root: Root) -> Shift | None:
    """Whether the culprits stand one call ahead of the others or behind them, by what came next."""
    if root.mismatch is None or root.mismatch.usual is None or not root.culprits:
        return None
    odd, usual, culprits = root.mismatch.odd, root.mismatch.usual, frozenset(root.culprits)
    following = {rank: it.op(root.seq + 1) for rank, it in root.view.standings.items()}
    extra = any(op and _alike(op, usual) for rank, op in following.items() if rank in culprits)
    skipped = any(op and _alike(op, odd) for rank, op in following.items() if rank not in culprits)
    if extra and skipped:
        return "swapped"
    return "extra" if extra else "skipped" if skipped else None


def _alike(one: Op, other: Op) -> bool:
    return one.name == other.name and one.input_sizes == other.input_sizes
