"""The stacks of many ranks on one page."""

from __future__ import annotations

from dataclasses import dataclass

from train_ledger.answer import NextCommand, Unreadable
from train_ledger.render import StackGroup, as_text, report_of_stacks

WAIT = StackGroup(
    (0, 1, 2), ("distributed.py:3 all_reduce", "train.py:90 step"), thread="MainThread", in_collective=True
)
LOAD = StackGroup((3,), ("train.py:88 next_batch",), thread="MainThread")


def test_the_odd_rank_comes_first() -> None:
    assert (
        as_text(report_of_stacks([WAIT, LOAD], next=[NextCommand("again", "train-ledger stacks r42")]))
        == """\
rank 3 stands apart: 2 different stacks of 4 ranks

rank 3, thread MainThread
    train.py:88 next_batch

ranks 0-2, thread MainThread
    distributed.py:3 all_reduce
    train.py:90 step

next
  # again
  train-ledger stacks r42
"""
    )


def test_two_halves_name_nobody() -> None:
    told = as_text(report_of_stacks([StackGroup((0, 1), ("a",)), StackGroup((2, 3), ("b",))]))
    assert told.startswith("2 different stacks of 4 ranks, none of them the odd one\n")


def test_where_most_do_not_wait_nobody_stands_apart() -> None:
    """In a healthy run the stacks differ by where the sampler met each rank."""
    told = as_text(report_of_stacks([StackGroup((0,), ("a",)), StackGroup((1, 2, 3), ("b",))]))
    assert told.startswith("2 different stacks of 4 ranks, none of them the odd one\n")


def test_nor_where_too_many_stand_elsewhere() -> None:
    others = [StackGroup((3,), ("a",)), StackGroup((4,), ("b",))]
    assert "stands apart" not in as_text(report_of_stacks([WAIT, *others]))


def test_a_few_in_another_collective_stand_apart_from_those_in_the_same() -> None:
    other = StackGroup((3,), ("distributed.py:9 barrier",), in_collective=True)
    assert as_text(report_of_stacks([WAIT, other])).startswith("rank 3 stands apart: ")


def test_equal_stacks_are_said_to_be_equal() -> None:
    assert as_text(report_of_stacks([WAIT])).startswith("all stacks are equal: ranks 0-2\n")


def test_what_could_not_be_taken_is_told() -> None:
    told = as_text(report_of_stacks([], unread=[Unreadable("rank 3, pid 12", "no such process")]))
    assert told.startswith("cannot tell, because no stack could be read\n")
    assert "  - rank 3, pid 12: no such process\n" in told


def test_a_frame_of_a_hostile_program_is_tame() -> None:
    told = as_text(report_of_stacks([StackGroup((0,), ("\x1b[2Jx\ny",), thread="\x1b[0m")]))
    assert "\x1b" not in told
    assert "    x y\n" in told


@dataclass(frozen=True)
class Node:
    frames: tuple[str, ...]
    ranks: tuple[int, ...]
    children: tuple[Node, ...] = ()


TREE = Node(
    ("/job/train.py:120 main",),
    (0, 1, 2, 3),
    (
        Node(("/job/train.py:90 step", "/opt/torch/distributed.py:3 all_reduce"), (0, 1, 2)),
        Node(("/job/train.py:88 next_batch",), (3,)),
    ),
)


def test_the_tree_shows_where_the_ways_part_the_odd_one_first() -> None:
    told = as_text(report_of_stacks([WAIT, LOAD], tree=TREE))
    assert told.endswith(
        """\
where the ways part, outermost call first
    ranks 0-3: train.py:120 main
      rank 3: train.py:88 next_batch
      ranks 0-2: train.py:90 step > distributed.py:3 all_reduce
"""
    )


def test_a_tree_of_one_way_is_not_drawn() -> None:
    assert "ways part" not in as_text(report_of_stacks([WAIT], tree=TREE))


def test_of_a_long_way_the_middle_is_left_out() -> None:
    long = Node(tuple(f"a.py:{line} f" for line in range(30)), (0, 1, 2, 3))
    told = as_text(report_of_stacks([WAIT, LOAD], tree=long))
    assert (
        "ranks 0-3: a.py:0 f > a.py:1 f > … 24 calls … > a.py:26 f > a.py:27 f > a.py:28 f > a.py:29 f\n"
        in told
    )


def test_thousands_of_different_stacks_are_counted_not_shown() -> None:
    groups = [StackGroup((rank,), (f"a.py:{rank} f",)) for rank in range(1000)]
    tree = Node((), tuple(range(1000)), tuple(Node(it.frames, it.ranks) for it in groups))
    told = as_text(report_of_stacks(groups, tree=tree))
    assert "and 975 groups more" in told
    assert len(told.splitlines()) < 300


def test_where_a_group_stands_is_said_in_its_heading() -> None:
    told = as_text(
        report_of_stacks([StackGroup((0,), ("a",), "MainThread", what="waits for its data loader")])
    )
    assert "\nrank 0, thread MainThread: waits for its data loader\n" in told
