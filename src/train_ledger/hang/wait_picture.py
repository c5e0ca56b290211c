"""How do a thousand waits fit into one drawing?

Ranks that wait for the same ranks and are waited for by the same share a node; a node's layer is the number
of waits between it and the root. Where that is still too many, all ranks of one layer whose groups are of one
kind share a node, and where that is too many too, the rest is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from train_ledger.hang.groups import GroupView, is_telling
from train_ledger.hang.laggards import Wait
from train_ledger.hang.roots import Root, Roots
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
    waiting, awaited = _places(waits, accused, found.roots)
    layers = _layers(waits, _start(found.roots, accused), waiting, awaited)
    ranks = sorted({*waiting, *awaited, *accused})
    fine = {
        rank: (layers.get(rank, _FAR), rank in accused, waiting.get(rank), awaited.get(rank))
        for rank in ranks
    }
    kinds = [_kind(wait.view) for wait in waits]
    coarse = {
        rank: (layers.get(rank, _FAR), rank in accused, frozenset(kinds[it] for it in waiting.get(rank, ())))
        for rank in ranks
    }
    keys: Mapping[int, Hashable] = fine if len(set(fine.values())) <= _NODES_IN_DETAIL else coarse
    return _drawn(waits, keys, layers, accused, waiting)


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


def _places(waits: Sequence[Wait], accused: frozenset[int], roots: Sequence[Root]) -> tuple[_Places, _Places]:
    """By rank the waits in which it waits, and those in which it is waited for.

    A culprit's own waits are shown in a circle alone: what it queued behind its fault is no reason.
    """
    circle = frozenset(rank for root in roots if root.kind == "cycle" for rank in root.culprits)
    waiting: dict[int, set[int]] = {}
    awaited: dict[int, set[int]] = {}
    for place, wait in enumerate(waits):
        for rank in wait.waiters:
            if rank not in accused or rank in circle:
                waiting.setdefault(rank, set()).add(place)
        for rank in (*wait.targets, *wait.unknown):
            awaited.setdefault(rank, set()).add(place)
    return _frozen(waiting), _frozen(awaited)


def _frozen(places: Mapping[int, set[int]]) -> _Places:
    return {rank: frozenset(some) for rank, some in places.items()}


def _start(roots: Sequence[Root], accused: frozenset[int]) -> frozenset[int]:
    return accused or frozenset(rank for root in roots for rank in root.waiting)


def _layers(
    waits: Sequence[Wait], start: frozenset[int], waiting: _Places, awaited: _Places
) -> dict[int, int]:
    """How many waits lie between each rank and the nearest of `start`."""
    layers = dict.fromkeys(start, 0)
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
        layers.update(dict.fromkeys(frontier, layer))
    return layers


def _kind(view: GroupView) -> str:
    return view.group.desc if is_telling(view.group.desc) else view.group.name


def _drawn(
    waits: Sequence[Wait],
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
    return Graph(nodes, tuple(_edges(waits, place_of, waiting)), sum(map(len, groups[_NODES:])))


def _text(waits: Sequence[Wait], ranks: Sequence[int], waiting: _Places) -> str:
    """What the ranks wait in, where one of them shows it for all."""
    places = waiting.get(ranks[0], frozenset())
    ops = {waits[place].op.name for place in places}
    return f"in {ops.pop()}" if len(ops) == 1 else ""


def _edges(waits: Sequence[Wait], place_of: Mapping[int, int], waiting: _Places) -> Iterable[Edge]:
    labels: dict[tuple[int, int], dict[tuple[str, int], set[str]]] = {}
    for place, wait in enumerate(waits):
        starts = {
            place_of[rank] for rank in wait.waiters if rank in place_of and place in waiting.get(rank, ())
        }
        ends = {place_of[rank] for rank in (*wait.targets, *wait.unknown) if rank in place_of}
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
