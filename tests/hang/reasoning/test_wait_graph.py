"""The roots of the graph against a slow, plain definition."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.hang import knowledge, stacks
from train_ledger.hang.dumps import dump_files
from train_ledger.hang.reasoning import wait_graph
from train_ledger.hang.reasoning.wait_graph import WaitGraph

RANKS = st.sets(st.integers(0, 9), min_size=1, max_size=4)
WAITS = st.lists(st.tuples(RANKS, RANKS), max_size=12)


def reach(waits: list[tuple[set[int], set[int]]], rank: int) -> set[int]:
    """Whom `rank` waits for, directly or through others."""
    found: set[int] = set()
    todo = [rank]
    while todo:
        at = todo.pop()
        new = {target for waiters, targets in waits if at in waiters for target in targets} - found
        found |= new
        todo.extend(new)
    return found


@given(WAITS)
def test_a_root_leads_to_nobody_but_itself(waits: list[tuple[set[int], set[int]]]) -> None:
    graph = WaitGraph()
    for waiters, targets in waits:
        graph.add(waiters, targets)
    ranks = {rank for waiters, targets in waits for rank in waiters | targets}
    roots = set()
    for rank in ranks:
        ahead = reach(waits, rank)
        if all(rank in reach(waits, other) for other in ahead):
            roots.add(tuple(sorted(ahead | {rank})))
    assert graph.roots() == sorted(roots)


@given(WAITS, st.integers(0, 9))
def test_victims_are_those_who_wait_for_it(waits: list[tuple[set[int], set[int]]], rank: int) -> None:
    graph = WaitGraph()
    for waiters, targets in waits:
        graph.add(waiters, targets)
    ranks = {it for waiters, targets in waits for it in waiters | targets}
    assert graph.victims_of([rank]) == tuple(
        sorted(it for it in ranks if rank in reach(waits, it) and it != rank)
    )


def test_a_long_chain_needs_no_recursion() -> None:
    graph = WaitGraph()
    for rank in range(20_000):
        graph.add([rank], [rank + 1])
    assert graph.roots() == [(20_000,)]
    assert len(graph.victims_of([20_000])) == 20_000


def test_the_examples_in_the_documentation_are_right() -> None:
    for module in (wait_graph, stacks, dump_files, knowledge):
        assert doctest.testmod(module).failed == 0
