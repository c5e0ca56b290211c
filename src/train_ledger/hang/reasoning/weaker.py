"""What can still be said of ranks that wait for nobody who is known to be missing?

A member that left no dump may be missing; one that recorded an exchange alone may have no partner; and that
all came and none finishes accuses nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from train_ledger.hang.reasoning.cause import Root
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.heads import at_head, oldest_pending, stands_by_itself
from train_ledger.hang.reasoning.laggards import Wait

__all__ = ["weaker_readings"]


def weaker_readings(
    waits: Sequence[Wait], views: Sequence[GroupView], damaged: frozenset[int]
) -> tuple[list[Root], list[Wait]]:
    """The causes, and the waits that the dumps cannot explain; `waits` come the earliest first.

    Of the `damaged` nothing is concluded. What somebody waits for before all else comes first. Where a
    collective that all its members came to stands by itself, who left no dump is not needed to explain it,
    and not accused.
    """
    roots: list[Root] = []
    undecided: list[Wait] = []
    heads = oldest_pending(views)
    open_waits = sorted(waits, key=lambda wait: not at_head(wait, heads))
    acquitted = any(stands_by_itself(wait, heads) for wait in open_waits)
    for wait in open_waits:
        absent = tuple(
            rank for rank in wait.unknown if rank not in damaged and rank not in wait.view.standings
        )
        if absent and len(absent) * 2 <= len(wait.view.group.ranks) and not roots and not acquitted:
            roots.append(_root_of("missing_ranks", absent, wait, seen=False))
        elif wait.unknown or _is_alone(wait):
            undecided.append(wait)
        elif wait.p2p and not wait.paired:
            roots.append(_root_of("p2p_unpaired", (), wait))
        else:
            roots.append(_root_of("no_mismatch", (), wait))
    return _strongest(roots), undecided


def _is_alone(wait: Wait) -> bool:
    """The only one that recorded in a group whose members are not listed: whom it waits for does not show."""
    return wait.view.group.inferred and len(wait.view.group.ranks) == 1


def _root_of(kind: str, culprits: tuple[int, ...], wait: Wait, *, seen: bool = True) -> Root:
    return Root(kind, culprits, wait.view, wait.seq, wait.op, wait.waiters, p2p=wait.p2p, seen=seen)


def _strongest(roots: Sequence[Root]) -> list[Root]:
    """Of readings that rest on the same absence the earliest; one line for all groups that stand."""
    accused: set[int] = set()
    kept: list[Root] = []
    kinds: set[str] = set()
    for root in roots:
        if root.culprits and not set(root.culprits) <= accused:
            accused.update(root.culprits)
            kept.append(root)
        elif not root.culprits and root.kind not in kinds:
            kinds.add(root.kind)
            kept.append(root)
    return kept
