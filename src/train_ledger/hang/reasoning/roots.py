"""Which ranks are the cause, and of what kind?

All waits of all groups become one graph. Its roots – ranks that wait for nobody, or a circle – are the
causes; whoever can reach them is a victim. Only where no root explains a waiting rank are weaker readings
taken: a member without a dump, or that all came and none finishes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

from train_ledger.answer import HANG_KINDS
from train_ledger.hang.reasoning.cause import Root, Roots
from train_ledger.hang.reasoning.cycles import by_waiter, crossed_queues, cycle_of
from train_ledger.hang.reasoning.groups import GroupView, siblings_of
from train_ledger.hang.reasoning.laggards import Wait, collective_waits, first_of
from train_ledger.hang.reasoning.mismatch import find_mismatch
from train_ledger.hang.reasoning.order import Orders
from train_ledger.hang.reasoning.p2p import p2p_mismatches, p2p_waits
from train_ledger.hang.reasoning.unstarted import unstarted
from train_ledger.hang.reasoning.wait_graph import WaitGraph
from train_ledger.hang.reasoning.weaker import weaker_readings

__all__ = ["Root", "Roots", "find_roots"]


def find_roots(
    views: Sequence[GroupView],
    *,
    fallen: Collection[int] = (),
    damaged: Collection[int] = (),
    silent: Collection[int] = (),
    ended: bool = False,
) -> Roots:
    """The causes over all groups.

    `fallen` are ranks known to be dead: without a dump they did not come. `damaged` are ranks whose dump is
    there but could not be read: of them nothing is concluded. `silent` are ranks whose dump holds nothing:
    where members are only inferred from what they recorded, they may be members, too. `ended` says that the
    job is dying or dead.
    """
    relevant = views if ended else [view for view in views if view.waiting]
    case = _Case(relevant, views, frozenset(fallen), frozenset(silent), ended)
    differing = case.mismatches()
    roots = [*differing, *_without_circles_of(differing, case.at_the_bottom())]
    undecided: list[Wait] = []
    unexplained = case.pending - case.explained_by(roots)
    if unexplained:
        open_waits = case.unanswered(unexplained)
        weaker, undecided = weaker_readings(open_waits, relevant, frozenset(damaged) | frozenset(silent))
        if any(root.culprits for root in roots):  # whom else they wait for may be a victim of these
            told = {id(wait) for wait in undecided}
            undecided += [wait for wait in open_waits if wait.unknown and id(wait) not in told]
        else:
            crossed = _without_circles_of(differing, crossed_queues(case.waits, views))
            roots += crossed or unstarted(open_waits, views) or weaker
    roots.sort(key=lambda root: (HANG_KINDS.index(root.kind), root.op.created_ns, root.culprits, root.seq))
    return Roots(tuple(roots), case.victims(roots), tuple(undecided), tuple(case.waits))


def _without_circles_of(differing: Sequence[Root], roots: Sequence[Root]) -> list[Root]:
    """The same causes, but for circles that only repeat a difference in which no side has the majority.

    Its members wait for each other, each in what it brought; that accuses nobody whom the tie did not.
    """
    tied = {rank for root in differing if root.mismatch and not root.culprits for rank in root.mismatch.ops}
    return [root for root in roots if root.kind != "cycle" or root.why or tied.isdisjoint(root.culprits)]


_LISTED_APART = 64


class _Case:
    """The waits of one set of dumps, and the graph over them."""

    def __init__(
        self,
        views: Sequence[GroupView],
        all_views: Sequence[GroupView],
        fallen: frozenset[int],
        silent: frozenset[int],
        ended: bool,
    ) -> None:
        self.views, self.all_views = views, all_views
        self.found = [
            (view, find_mismatch(view, partial(siblings_of, view, all_views), ended=ended)) for view in views
        ]
        waits = [wait for view, found in self.found for wait in collective_waits(view, found)]
        waits += [wait for view in views for wait in p2p_waits(view)]
        self.waits = [_with_fallen(_with_silent(wait, silent), fallen) for wait in waits]
        self.pending = {rank for view in views for rank in view.waiting}
        self.odd = {rank for wait in self.waits for rank in wait.odd}
        self.late_in = _by_rank(self.waits, attrgetter("late"))
        self.stuck_in = _by_rank(self.waits, attrgetter("stuck"))
        self.graph = WaitGraph()
        at_fault = self.odd | self.stuck_in.keys()  # what they queued behind their own fault is no reason
        for wait in self.waits:
            self.graph.add([rank for rank in wait.waiters if rank not in at_fault], wait.targets)

    def mismatches(self) -> list[Root]:
        roots = []
        for view, found in self.found:
            if found:
                came = {*view.waiting} if found.culprits else {*view.waiting, *found.ops}
                waiting = tuple(sorted(came.difference(found.culprits)))
                roots.append(
                    Root(found.kind, found.culprits, view, found.seq, found.odd, waiting, mismatch=found)
                )
        for view in self.views:
            for found in p2p_mismatches(view):
                waiting = tuple(sorted(found.ops))
                roots.append(
                    Root(found.kind, (), view, found.seq, found.odd, waiting, mismatch=found, p2p=True)
                )
        return roots

    def at_the_bottom(self) -> list[Root]:
        """The roots of the graph; those that came and whom all others joined too are no root."""
        alike: dict[tuple[str, int, int], list[Root]] = {}
        waits_of, orders = by_waiter(self.waits), Orders(self.all_views)
        for ranks in self.graph.roots():
            if len(ranks) > 1:
                root = cycle_of(ranks, waits_of, orders)
            elif ranks[0] in self.odd or (ranks[0] in self.pending and ranks[0] not in self.stuck_in):
                continue
            else:
                root = self._single(ranks[0])
            alike.setdefault((root.kind, id(root.view), root.seq), []).append(root)
        return [_together(roots) for roots in alike.values()]

    def _single(self, rank: int) -> Root:
        if rank in self.stuck_in:
            wait = first_of(self.stuck_in[rank])
            standing = wait.view.standings[rank]
            seq = standing.lowest_pending or 0
            op = standing.op(seq) or wait.op
            return Root("completion_laggard", (rank,), wait.view, seq, op, wait.waiters)
        late = self.late_in[rank]
        wait = first_of([wait for wait in late if not wait.p2p] or late)
        kind = "p2p_unpaired" if wait.p2p else "missing_ranks"
        after_s = wait.view.came_late.get(rank)
        why = (
            ()
            if after_s is None
            else (f"rank {rank} came {after_s:.0f} s after them, when they had given up",)
        )
        return Root(kind, (rank,), wait.view, wait.seq, wait.op, wait.waiters, p2p=wait.p2p, why=why)

    def explained_by(self, roots: Iterable[Root]) -> set[int]:
        named: set[int] = set()
        waited_for: set[int] = set()
        for root in roots:
            named.update(root.culprits, root.waiting)
            waited_for.update(root.culprits or root.waiting)
        return named.union(self.graph.victims_of(waited_for))

    def unanswered(self, ranks: set[int]) -> list[Wait]:
        """The waits in which some of these ranks wait for nobody that is known, the earliest first."""
        mine = [wait for wait in self.waits if ranks & set(wait.waiters) and not wait.targets]
        return sorted(mine, key=lambda wait: wait.op.created_ns)

    def victims(self, roots: Iterable[Root]) -> dict[int, tuple[int, ...]]:
        """For each culprit who waits for it; a rank whose group waits for a victim is one too.

        Where very many are accused their victims are listed once, under the first.
        """
        for view in self.views:
            self.graph.add(view.waiting, view.waiting)
        culprits = {rank for root in roots for rank in root.culprits}
        asked = (
            [[rank] for rank in sorted(culprits)] if len(culprits) <= _LISTED_APART else [sorted(culprits)]
        )
        found = {}
        for ranks in asked:
            found[ranks[0]] = tuple(it for it in self.graph.victims_of(ranks) if it not in culprits)
        return found


def _with_silent(wait: Wait, silent: frozenset[int]) -> Wait:
    if not silent or wait.targets or not wait.view.group.inferred:
        return wait
    return replace(wait, unknown=(*wait.unknown, *sorted(silent.difference(wait.view.group.ranks))))


def _with_fallen(wait: Wait, fallen: frozenset[int]) -> Wait:
    dead = tuple(rank for rank in wait.unknown if rank in fallen)
    if not dead:
        return wait
    unknown = tuple(rank for rank in wait.unknown if rank not in fallen)
    return replace(wait, late=(*wait.late, *dead), unknown=unknown)


def _by_rank(waits: Iterable[Wait], ranks_of: Callable[[Wait], Sequence[int]]) -> dict[int, list[Wait]]:
    found: dict[int, list[Wait]] = {}
    for wait in waits:
        for rank in ranks_of(wait):
            found.setdefault(rank, []).append(wait)
    return found


def _together(roots: Sequence[Root]) -> Root:
    """One cause of those that show at one place; who is accused there is not listed as waiting."""
    culprits = {rank for root in roots for rank in root.culprits}
    distinct = {id(root.waiting): root.waiting for root in roots}  # of thousands of late ranks it is one
    waiting = {rank for ranks in distinct.values() for rank in ranks}
    why = dict.fromkeys(line for root in roots for line in root.why)
    return replace(
        roots[0],
        culprits=tuple(sorted(culprits)),
        waiting=tuple(sorted(waiting - culprits)),
        why=tuple(why),
    )
