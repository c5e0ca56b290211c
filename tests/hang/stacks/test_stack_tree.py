"""The ways of the ranks as one tree."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.hang.stacks import RankStack, StackGroup, Thread, merge
from train_ledger.hang.stacks.stack_formats import frame
from train_ledger.hang.stacks.stack_tree import StackNode, tree_of


def group(ranks: tuple[int, ...], *outermost_first: str) -> StackGroup:
    return StackGroup(ranks, outermost_first[::-1])


def test_what_all_have_in_common_is_the_root_and_the_odd_one_comes_first() -> None:
    waiting = group((0, 1, 2, 3, 4, 6, 7), "main", "step", "all_reduce")
    loading = group((5,), "main", "next_batch", "get")
    assert tree_of([waiting, loading]) == StackNode(
        ("main",),
        tuple(range(8)),
        (
            StackNode(("next_batch", "get"), (5,)),
            StackNode(("step", "all_reduce"), (0, 1, 2, 3, 4, 6, 7)),
        ),
    )


def test_who_stands_in_a_call_from_which_others_went_on_is_in_no_child() -> None:
    tree = tree_of([group((0,), "main"), group((1, 2), "main", "step")])
    assert tree == StackNode(("main",), (0, 1, 2), (StackNode(("step",), (1, 2)),))


def test_without_a_call_in_common_the_root_has_none() -> None:
    assert tree_of([group((0,), "a"), group((1,), "b")]).frames == ()
    assert tree_of([]) == StackNode((), ())


def test_partings_without_end_are_cut() -> None:
    ways = [group((rank,), *["f"] * rank, "g") for rank in range(500)]
    depth, node = 0, tree_of(ways)
    while node.children:
        depth, node = depth + 1, node.children[-1]
    assert depth == 64
    assert len(node.ranks) == 500 - 64


STACKS = st.dictionaries(st.integers(0, 50), st.lists(st.sampled_from("abc"), max_size=5), min_size=1)


@given(STACKS)
def test_every_rank_is_found_at_the_end_of_its_own_calls(calls: dict[int, list[str]]) -> None:
    stacks = [
        RankStack(
            rank, 1, None, (Thread("MainThread", True, tuple(frame("f.py", 1, it) for it in way[::-1])),)
        )
        for rank, way in calls.items()
    ]
    tree = tree_of(merge(stacks))
    for rank, way in calls.items():
        node, walked = tree, list(tree.frames)
        while found := [child for child in node.children if rank in child.ranks]:
            assert len(found) == 1
            node = found[0]
            walked += node.frames
        assert rank in node.ranks
        assert walked == [f"f.py:1 {it}" for it in way]


def test_the_whole_of_a_large_job_is_merged_at_once() -> None:
    """16,384 ranks of 30 calls, every second one elsewhere; two seconds on a quiet machine is the limit."""
    common = tuple(frame(f"/site-packages/torch/m{at}.py", at, "f") for at in range(29))
    stacks = {
        rank: RankStack(
            rank, 1, None, (Thread("MainThread", True, (frame("/job/a.py", rank // 2, "g"), *common)),)
        )
        for rank in range(16384)
    }
    started = time.process_time()
    tree = tree_of(merge(stacks))
    assert time.process_time() - started < 2
    assert len(tree.children) == 8192
