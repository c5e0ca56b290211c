"""How do a thousand waits fit into one drawing?

Ranks that wait for the same ranks and are waited for by the same share a node; a node's layer is the number
of waits between it and the root. Where that is still too many, all ranks of one layer whose groups are of one
kind share a node, and where that is too many too, the rest is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from train_ledger.hang.reasoning.groups import GroupView, is_telling
from train_ledger.hang.reasoning.laggards import Wait
from train_ledger.hang.reasoning.roots import Root, Roots
from train_ledger.render.picture import Edge, Graph, Node

__all__ = ["wait_graph"]

_NODES = 24
_NODES_IN_DETAIL = 10
_LABELS = 2
_FAR = 99

_Places = Mapping[int, frozenset[int]]


def wait_graph(found: Roots) -> Graph | None:
    """Who waits for whom; None where nobody waits."""
    accused = frozenset(rank for root in found.roots for rank in root.culprits)
    waits = _first_of_each(found.waits)
    if not waits:
        return None
    targets = [frozenset((*wait.targets, *wait.unknown)) for wait in waits]
    waiting = _waiting(waits, accused, found.roots)
    layers = _layers(waits, targets, _start(found.roots, accused), waiting)
    awaited = _by_rank(targets)
    ranks = sorted({*waiting, *awaited, *accused})
    kinds = [_kind(wait.view) for wait in waits]
    where = {rank: (layers.get(rank, _FAR), rank in accused) for rank in ranks}
    fine = {rank: (where[rank], waiting.get(rank), awaited.get(rank)) for rank in ranks}
    coarse = {rank: (where[rank], frozenset(kinds[it] for it in waiting.get(rank, ()))) for rank in ranks}
    keys: Mapping[int, Hashable] = fine if len(set(fine.values())) <= _NODES_IN_DETAIL else coarse
    return _drawn(waits, targets, keys, layers, accused, waiting)


def _first_of_each(waits: Iterable[Wait]) -> list[Wait]:
    """The waits without those that only wait behind a lower number of the same group."""
    kept = []
    seen: set[tuple[int, int]] = set()
    for wait in waits:
        new = [rank for rank in wait.waiters if (id(wait.view), rank) not in seen]
        if new or wait.p2p:
            kept.append(wait)
        if not wait.p2p:
            seen.update((id(wait.view), rank) for rank in new)
    return kept


def _waiting(waits: Sequence[Wait], accused: frozenset[int], roots: Sequence[Root]) -> _Places:
    """By rank the waits in which it waits.

    A culprit's own are taken in a circle alone: what it queued behind its fault is no reason.
    """
    circle = frozenset(rank for root in roots if root.kind == "cycle" for rank in root.culprits)
    return _by_rank(
        [frozenset(it for it in wait.waiters if it not in accused or it in circle) for wait in waits]
    )


def _by_rank(ranks_of: Iterable[Iterable[int]]) -> _Places:
    places: dict[int, set[int]] = {}
    for place, ranks in enumerate(ranks_of):
        for rank in ranks:
            places.setdefault(rank, set()).add(place)
    return {rank: frozenset(some) for rank, some in places.items()}


def _start(roots: Sequence[Root], accused: frozenset[int]) -> frozenset[int]:
    return accused or frozenset(rank for root in roots for rank in root.waiting)


def _layers(
    waits: Sequence[Wait], targets: list[frozenset[int]], start: frozenset[int], waiting: _Places
) -> dict[int, int]:
    """How many waits lie between each rank and the nearest of `start`.

    Where all came and none finishes, the ranks without a place wait for those that have one, for these are
    held up elsewhere: they become the targets of that wait.
    """
    layers = dict.fromkeys(start, 0)
    awaited = _by_rank(targets)
    reached: set[int] = set()
    frontier, layer = set(start), 0
    while frontier:
        layer += 1
        through = {place for rank in frontier for place in awaited.get(rank, ())} - reached
        reached |= through
        frontier = {
            rank
            for place in through
            for rank in waits[place].waiters
            if rank not in layers and rank in waiting
        }
        frontier = frontier or _held_up(waits, targets, layers)
        layers.update(dict.fromkeys(frontier, layer))
    return layers


def _held_up(waits: Sequence[Wait], targets: list[frozenset[int]], layers: Mapping[int, int]) -> set[int]:
    held_up: set[int] = set()
    for place, wait in enumerate(waits):
        if not targets[place]:
            placed = layers.keys() & wait.waiters
            others = set(wait.waiters) - placed
            if placed and others:
                targets[place] = frozenset(placed)
                held_up |= others
    return held_up


def _kind(view: GroupView) -> str:
    return view.group.desc if is_telling(view.group.desc) else view.group.name


def _drawn(
    waits: Sequence[Wait],
    targets: Sequence[frozenset[int]],
    keys: Mapping[int, Hashable],
    layers: Mapping[int, int],
    accused: frozenset[int],
    waiting: _Places,
) -> Graph:
    members: dict[Hashable, list[int]] = {}
    for rank, key in keys.items():
        members.setdefault(key, []).append(rank)
    groups = sorted(members.values(), key=lambda ranks: (layers.get(ranks[0], _FAR), -len(ranks), ranks))
    kept = groups[:_NODES]
    place_of = {rank: place for place, ranks in enumerate(kept) for rank in ranks}
    deepest = max((layers.get(ranks[0], 0) for ranks in kept), default=0)
    nodes = tuple(
        Node(
            tuple(ranks),
            min(layers.get(ranks[0], deepest + 1), deepest + 1),
            ranks[0] in accused,
            _text(waits, ranks, waiting),
        )
        for ranks in kept
    )
    return Graph(nodes, tuple(_edges(waits, targets, place_of, waiting)), sum(map(len, groups[_NODES:])))


def _text(waits: Sequence[Wait], ranks: Sequence[int], waiting: _Places) -> str:
    """What the ranks wait in, where it is one operation for all."""
    places = {place for rank in ranks for place in waiting.get(rank, ())}
    ops = {waits[place].op.name for place in places}
    return f"in {ops.pop()}" if len(ops) == 1 else ""


def _edges(
    waits: Sequence[Wait],
    targets: Sequence[frozenset[int]],
    place_of: Mapping[int, int],
    waiting: _Places,
) -> Iterable[Edge]:
    labels: dict[tuple[int, int], dict[tuple[str, int], set[str]]] = {}
    for place, wait in enumerate(waits):
        waiters = [rank for rank in wait.waiters if rank not in targets[place]]
        starts = {place_of[it] for it in waiters if it in place_of and place in waiting.get(it, ())}
        ends = {place_of[rank] for rank in targets[place] if rank in place_of}
        for pair in ((start, end) for start in starts for end in ends if start != end):
            by_kind = labels.setdefault(pair, {})
            by_kind.setdefault((_kind(wait.view), wait.seq), set()).add(wait.view.label)
    for (start, end), by_kind in sorted(labels.items()):
        yield Edge(start, end, _label(by_kind))


def _label(by_kind: Mapping[tuple[str, int], set[str]]) -> str:
    """The groups of an edge: each by name, or how many there are of a kind."""
    counts = Counter({key: len(groups) for key, groups in by_kind.items()})
    told = [
        f"{kind}, number {seq}" if count == 1 else f"{count} groups {kind}, number {seq}"
        for (kind, seq), count in counts.most_common(_LABELS)
    ]
    return "; ".join(told) + (f"; {len(counts) - _LABELS} more" if len(counts) > _LABELS else "")
