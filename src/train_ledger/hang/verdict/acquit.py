"""Which of the accused only wait for somebody else?

A rank that never came to a collective may stand in a wait that the recorder does not show: a send or receive
over gloo, the store, a collective of a library of its own. Its stack does show it. So may one that raised as
a rank was aborted that left no dump: what threw it out is not recorded. Such ranks are victims; where nobody
else is left, nobody is accused.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import replace

from train_ledger.hang.reasoning.roots import Root, Roots
from train_ledger.hang.stacks import stand_of
from train_ledger.hang.verdict.evidence import Evidence
from train_ledger.render import ranks_in_brief

__all__ = ["acquit"]


def acquit(found: Roots, evidence: Evidence) -> Roots:
    """The same causes without those among the accused whose stack waits for others."""
    aborted = _was_aborted_unseen(evidence)
    waiting = {
        rank for root in found.roots for rank in root.culprits if _waits(root, rank, evidence, aborted)
    }
    if not waiting:
        return found
    roots = [_without(root, waiting) for root in found.roots]
    accusing = [root for root in roots if root.culprits]
    kept = tuple(root for root in roots if root.culprits or not accusing or not _was_accusing(root, found))
    return replace(found, roots=kept, victims_of=_victims(found.victims_of, waiting))


def _came(root: Root, rank: int, evidence: Evidence) -> bool:
    """Whether its own watchdog says that it waited in this very operation."""
    known = evidence.known.get(rank)
    return (
        root.kind == "missing_ranks" and known is not None and known.came_to(root.view.group.name, root.seq)
    )


def _waits(root: Root, rank: int, evidence: Evidence, aborted: bool) -> bool:
    if _came(root, rank, evidence):
        return True
    if root.kind != "missing_ranks" or rank in evidence.fallen:
        return False
    if rank in evidence.stacks and stand_of(evidence.stacks[rank]).where == "collective":
        return True
    return aborted and rank in evidence.known and evidence.known[rank].exception is not None


def _was_aborted_unseen(evidence: Evidence) -> bool:
    """Whether a rank was aborted and took its dump with it: who raised may have been thrown out by it."""
    return any(
        it.signal == signal.SIGABRT and rank not in evidence.dumps for rank, it in evidence.known.items()
    )


def _without(root: Root, waiting: set[int]) -> Root:
    acquitted = tuple(sorted(waiting.intersection(root.culprits)))
    if not acquitted or root.kind != "missing_ranks":
        return root
    said = (
        f"not accused: {ranks_in_brief(acquitted)}, whose stack waits in what the recorder does not show, "
        "whose own watchdog timed out in this operation, or who raised as a rank without a dump was aborted"
    )
    return replace(
        root,
        culprits=tuple(rank for rank in root.culprits if rank not in waiting),
        waiting=tuple(sorted({*root.waiting, *acquitted})),
        why=(*root.why, said),
    )


def _was_accusing(root: Root, found: Roots) -> bool:
    return any(it.view is root.view and it.seq == root.seq and it.culprits for it in found.roots)


def _victims(victims_of: Mapping[int, tuple[int, ...]], waiting: set[int]) -> dict[int, tuple[int, ...]]:
    """Whom the acquitted held up is held up by whoever is left, where that is one rank alone."""
    left = {rank: victims for rank, victims in victims_of.items() if rank not in waiting}
    if len(left) != 1:
        return left
    held_up = {rank for victims in victims_of.values() for rank in victims} | waiting
    return {rank: tuple(sorted(held_up - {rank})) for rank in left}
