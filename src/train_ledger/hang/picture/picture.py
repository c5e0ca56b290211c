"""What is to be drawn of the causes that were found?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from train_ledger.hang.picture.lanes import lanes
from train_ledger.hang.picture.pending import pending_elsewhere
from train_ledger.hang.picture.table import Beside, pair_table, seq_table
from train_ledger.hang.picture.wait_picture import wait_graph
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.roots import Root, Roots
from train_ledger.hang.stacks import merge, stand_of
from train_ledger.hang.verdict.evidence import Evidence
from train_ledger.render.picture import Picture, Stack, Table

__all__ = ["picture_of"]

_FINDINGS = 3
_STACKS = 16
_FRAMES = 40


def picture_of(
    found: Roots, views: Sequence[GroupView], evidence: Evidence, damaged: Collection[int] = ()
) -> Picture:
    """The tables of the first causes, the graph of all waits, the last operations and the stacks.

    Where no cause was found but somebody waits, the first such wait has a table. `damaged` are ranks whose
    dump is there, but could not be read. The size does not grow with the number of ranks beyond the ranges
    that name them.
    """
    accused = frozenset(rank for root in found.roots for rank in root.culprits)
    known = Beside(pending_elsewhere(views), frozenset(damaged))
    shown = found.roots[:_FINDINGS] or _undecided(found)
    tables = [tuple(_tables(root, found, known)) for root in shown]
    more = len(found.roots) - len(tables)
    if more > 0:
        tables[-1] = (*tables[-1][:-1], _with_more(tables[-1][-1], more))
    return Picture(
        tables=tuple(tables),
        graph=wait_graph(found),
        lanes=lanes(shown[0], views, accused) if shown else None,
        stacks=tuple(_stacks(found.roots, evidence)),
    )


def _undecided(found: Roots) -> tuple[Root, ...]:
    """The first wait that is not explained, in the place of a cause that accuses nobody."""
    return tuple(
        Root("no_mismatch", (), wait.view, wait.seq, wait.op, wait.waiters, p2p=wait.p2p)
        for wait in found.undecided[:1]
    )


def _with_more(table: Table, more: int) -> Table:
    said = f"{more} more {'finding is' if more == 1 else 'findings are'} told below without a table"
    return replace(table, notes=(*table.notes, said))


def _tables(root: Root, found: Roots, known: Beside) -> Iterator[Table]:
    """That of the root's group; of a circle that of the next group in it, too."""
    if root.p2p:
        yield pair_table(root)
        return
    yield seq_table(root, root.view, root.seq, known)
    if root.kind == "cycle":
        circle = frozenset(root.waiting) | frozenset(root.culprits)
        for wait in found.waits:
            inside = circle.intersection(wait.waiters) and circle.intersection(wait.targets)
            if inside and not wait.p2p and wait.view is not root.view:
                yield seq_table(root, wait.view, wait.seq, known)
                return


def _stacks(roots: Sequence[Root], evidence: Evidence) -> Iterator[Stack]:
    """Those that were taken, the odd ones first; then where the dumps say that operations were issued."""
    if evidence.stacks:
        groups = merge(evidence.stacks)
        for group in groups[:_STACKS]:
            stand = stand_of(evidence.stacks[group.ranks[0]])
            odd = stand.where == "host" and len(groups) > 1
            yield Stack(group.ranks, stand.what, group.frames[:_FRAMES], odd)
    for root in roots[:_FINDINGS]:
        yield from _recorded(root, evidence)


def _recorded(root: Root, evidence: Evidence) -> Iterator[Stack]:
    for rank in root.culprits[:1]:
        dump = evidence.dumps.get(rank)
        standing = root.view.standings.get(rank)
        op = (standing.op(root.seq) if standing else None) or (dump.last if dump else None)
        if op and op.frames:
            what = f"{op.name}, {'done' if op.done else op.state}, the last it recorded, was issued here"
            yield Stack((rank,), what, op.frames[:_FRAMES])
    usual = root.mismatch.usual if root.mismatch and root.culprits else root.op
    if usual and usual.frames and root.waiting:
        yield Stack(root.waiting, f"{usual.name}, number {root.seq}, was issued here", usual.frames[:_FRAMES])
