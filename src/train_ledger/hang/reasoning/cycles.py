"""Who is the cause where ranks wait for each other?

The one whose order of operations departs from its peers'; else those that stand in another group than most;
else all of them. There are two such circles: ranks whose hosts wait for each other, and ranks that all issued
everything, but whose GPUs take the operations of different groups in different orders, so that each holds up
what the next one has at the head of its queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from train_ledger.hang.reasoning.cause import Root
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.laggards import Wait, began
from train_ledger.hang.reasoning.order import Orders
from train_ledger.hang.reasoning.wait_graph import WaitGraph

__all__ = ["by_waiter", "crossed_queues", "cycle_of"]

_ByWaiter = Mapping[int, Sequence[Wait]]


def by_waiter(waits: Iterable[Wait]) -> _ByWaiter:
    """The waits in which each rank stands, the one that began first first."""
    found: dict[int, list[Wait]] = {}
    for wait in sorted(waits, key=began):
        for rank in wait.waiters:
            found.setdefault(rank, []).append(wait)
    return found


def cycle_of(ranks: Sequence[int], waits_of: _ByWaiter, orders: Orders) -> Root:
    """The circle of `ranks`, and who of them is its cause: all, where nothing tells them apart."""
    place = _places(ranks, waits_of)
    votes = Counter(id(wait.view) for wait in place.values())
    most, count = votes.most_common(1)[0]
    elsewhere = tuple(rank for rank, wait in place.items() if id(wait.view) != most)
    odd = orders.departures(place)
    culprits = tuple(odd) or (elsewhere if count * 2 > len(ranks) else ()) or tuple(ranks)
    wait = place[culprits[0]]
    return Root(
        "cycle", culprits, wait.view, wait.seq, wait.op, tuple(ranks), p2p=wait.p2p, why=tuple(odd.values())
    )


def _places(ranks: Sequence[int], waits_of: _ByWaiter) -> dict[int, Wait]:
    """The wait for one of the circle in which each rank of it stands, the first of several."""
    circle = frozenset(ranks)
    mine = {id(wait): wait for rank in ranks for wait in waits_of[rank]}
    inside = {place for place, wait in mine.items() if not circle.isdisjoint(wait.targets)}
    return {rank: next(wait for wait in waits_of[rank] if id(wait) in inside) for rank in ranks}


def crossed_queues(waits: Sequence[Wait], views: Sequence[GroupView]) -> list[Root]:
    """Circles in which some issued everything and their GPUs wait.

    Where the cause cannot be told, only those of ranks that all issued everything, each with another order
    than the next: no common order of calls makes such a circle.
    """
    queued = list(_queued(views))
    in_queues = {rank for wait in queued for rank in wait.waiters}
    waits = [*queued, *(wait for wait in waits if wait.targets)]
    waits_of, orders = by_waiter(waits), Orders(views)
    graph = WaitGraph()
    for wait in waits:
        graph.add(wait.waiters, wait.targets)
    roots = []
    for ranks in graph.roots():
        if len(ranks) < 2:
            continue
        place = _places(ranks, waits_of)
        odd = orders.departures(place)
        culprits = tuple(odd) or (tuple(ranks) if in_queues.issuperset(ranks) else ())
        if culprits:
            wait = place[min(culprits)]
            rest = tuple(sorted({*ranks}.difference(culprits)))
            roots.append(Root("cycle", culprits, wait.view, wait.seq, wait.op, rest, why=tuple(odd.values())))
    return roots


def _queued(views: Sequence[GroupView]) -> Iterator[Wait]:
    """Ranks wait, in their oldest pending operation, for the members that have an older one."""
    heads = _heads(views)
    first: dict[tuple[int, int], tuple[GroupView, list[int]]] = {}
    for rank, (view, seq) in heads.items():
        first.setdefault((id(view), seq), (view, []))[1].append(rank)
    for (_, seq), (view, waiters) in first.items():
        op = view.standings[waiters[0]].op(seq)
        behind = tuple(
            member
            for member, standing in view.standings.items()
            if standing.lowest_pending == seq and member in heads and not _is(heads[member], view, seq)
        )
        if op and behind:
            yield Wait(view, seq, op, tuple(waiters), behind)


def _is(head: tuple[GroupView, int], view: GroupView, seq: int) -> bool:
    return head[0] is view and head[1] == seq


def _heads(views: Sequence[GroupView]) -> Mapping[int, tuple[GroupView, int]]:
    """The oldest pending collective of each rank; nothing of a rank that has an older send or receive."""
    oldest: dict[int, tuple[int, GroupView, int | None]] = {}
    for view in views:
        for rank in view.waiting:
            standing = view.standings[rank]
            seq = standing.lowest_pending
            op = standing.op(seq) if seq is not None else None
            pairs = standing.held.p2p[:1] if standing.held else ()
            for record, number in [
                *((op.record, seq) for op in [op] if op),
                *((it.record, None) for it in pairs),
            ]:
                if rank not in oldest or record < oldest[rank][0]:
                    oldest[rank] = (record, view, number)
    return {rank: (view, seq) for rank, (_, view, seq) in oldest.items() if seq is not None}
