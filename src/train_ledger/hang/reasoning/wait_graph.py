"""Who is at the root, when everybody waits for somebody?

Ranks are nodes, "waits for" are edges. A set of ranks that can all reach each other and from which nothing
leads out is a root: one rank that waits for nobody, or a circle. Everybody who can reach it is its victim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

__all__ = ["WaitGraph"]


class WaitGraph:
    """A directed graph over ranks; many waiters for many targets cost one node, not one edge a pair.

    >>> graph = WaitGraph()
    >>> graph.add([0, 1], [2]); graph.add([2], [3])
    >>> graph.roots(), graph.victims_of([3])
    ([(3,)], (0, 1, 2))
    """

    def __init__(self) -> None:
        self._out: dict[int, list[int]] = {}
        self._into: dict[int, list[int]] = {}
        self._joints = 0

    def add(self, waiters: Iterable[int], targets: Iterable[int]) -> None:
        """Each of `waiters` waits for each of `targets`."""
        self._joints -= 1  # joints are negative, ranks are not
        joint = self._joints
        for waiter in waiters:
            self._edge(waiter, joint)
        for target in targets:
            self._edge(joint, target)

    def _edge(self, start: int, end: int) -> None:
        self._out.setdefault(start, []).append(end)
        self._into.setdefault(end, []).append(start)
        self._out.setdefault(end, [])
        self._into.setdefault(start, [])

    def roots(self) -> list[tuple[int, ...]]:
        """The ranks of every root, each sorted, in the order of their lowest rank."""
        parts = list(self._components())
        component = {node: index for index, nodes in enumerate(parts) for node in nodes}
        found = []
        for index, nodes in enumerate(parts):
            ranks = tuple(sorted(node for node in nodes if node >= 0))
            leads_out = any(component[end] != index for node in nodes for end in self._out[node])
            if ranks and not leads_out:
                found.append(ranks)
        return sorted(found)

    def victims_of(self, ranks: Collection[int]) -> tuple[int, ...]:
        """All ranks that wait for one of `ranks`, directly or through others."""
        seen, todo, asked = set(ranks), list(ranks), frozenset(ranks)
        while todo:
            for start in self._into.get(todo.pop(), ()):
                if start not in seen:
                    seen.add(start)
                    todo.append(start)
        return tuple(sorted(node for node in seen if node >= 0 and node not in asked))

    def _components(self) -> Iterator[Sequence[int]]:
        """Strongly connected components (Tarjan 1972, without recursion)."""
        order: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        on_stack: set[int] = set()
        for start in list(self._out):
            if start in order:
                continue
            path = [(start, iter(self._out[start]))]
            _enter(start, order, low, stack, on_stack)
            while path:
                node, ends = path[-1]
                end = next((it for it in ends if it not in order or it in on_stack), None)
                if end is None:
                    path.pop()
                    if path:
                        low[path[-1][0]] = min(low[path[-1][0]], low[node])
                    if low[node] == order[node]:
                        yield _leave(node, stack, on_stack)
                elif end in order:
                    low[node] = min(low[node], order[end])
                else:
                    _enter(end, order, low, stack, on_stack)
                    path.append((end, iter(self._out[end])))


def _enter(node: int, order: dict[int, int], low: dict[int, int], stack: list[int], on: set[int]) -> None:
    order[node] = low[node] = len(order)
    stack.append(node)
    on.add(node)


def _leave(node: int, stack: list[int], on: set[int]) -> list[int]:
    part = [stack.pop()]
    while part[-1] != node:
        part.append(stack.pop())
    on.difference_update(part)
    return part
