"""Real dumps of torchrun jobs over gloo (torch 2.13, 4 ranks) in which one rank left the common path."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.hang import RankKnowledge, analyse

RECORDED = Path(__file__).parents[1] / "recorded" / "hang"

RIGHT = {
    "gloo_sleep_3": ("missing_ranks", 3, "train.py:21 step"),
    "gloo_loader_0": ("missing_ranks", 0, "train.py:28 step"),
    "gloo_raise_3": ("missing_ranks", 3, None),
    "gloo_type_0": ("collective_type_mismatch", 0, "train.py:23 step"),
    "gloo_type_3": ("collective_type_mismatch", 3, "train.py:23 step"),
    "gloo_size_3": ("size_or_syntax_mismatch", 3, "train.py:24 step"),
    "gloo_skip_equal_0": ("size_or_syntax_mismatch", 0, "train.py:29 step"),
}
"""name → kind, culprit, place in its code"""

GRID = {
    "gloo_grid_skip_tp_3": ("cycle", 3, "high"),
    "gloo_grid_sleepfirst_5": ("missing_ranks", 5, "high"),
    "gloo_grid_type_6": ("collective_type_mismatch", 6, "medium"),
}
"""Eight ranks in tensor, pipeline and data parallel pairs: one left out its tensor parallel all_reduce, one
slept before the first of all, one broadcast where its data parallel peer reduced."""


@pytest.mark.parametrize("name", RIGHT)
def test_the_culprit_and_its_place_in_the_code_are_named(name: str) -> None:
    kind, culprit, frame = RIGHT[name]
    answer = analyse([RECORDED / name])
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", kind, (culprit,))
    assert answer.findings[0].frame == frame
    assert answer.victims_of == {culprit: tuple(rank for rank in range(4) if rank != culprit)}
    assert answer.confidence == "high"


@pytest.mark.parametrize("name", GRID)
def test_the_culprit_in_a_grid_of_pairs_is_named(name: str) -> None:
    kind, culprit, confidence = GRID[name]
    answer = analyse([RECORDED / name])
    assert (answer.kind, answer.culprits, answer.confidence) == (kind, (culprit,), confidence)
    if name != "gloo_grid_sleepfirst_5":  # there most groups hold too little to tell their members
        assert answer.victims_of == {culprit: tuple(rank for rank in range(8) if rank != culprit)}


def test_how_the_order_departs_stands_in_the_evidence() -> None:
    lines = analyse([RECORDED / "gloo_grid_skip_tp_3"]).findings[0].evidence
    assert lines[1] == (
        "between numbers 3 and 4 of group 0 (default_pg) rank 3 issued 0 in tp where 1 are usual"
    )


def test_members_of_a_gloo_group_are_inferred_and_said_to_be() -> None:
    answer = analyse([RECORDED / "gloo_sleep_3"])
    assert answer.group is not None
    assert (answer.group.ranks, answer.group.inferred) == ((0, 1, 2, 3), True)
    assert any("inferred" in line for line in answer.not_observed)


def test_a_rank_beyond_those_that_dumped_is_known_by_the_world_size() -> None:
    answer = analyse([RECORDED / "gloo_sleep_3"], world_size=5)
    assert answer.missing_dumps == (4,)
    assert answer.culprits == (3,)
    assert answer.confidence == "medium"


def test_what_the_rank_raised_stands_in_the_evidence() -> None:
    known = {3: RankKnowledge(3, host="node-1", step=5, exception="RuntimeError: bad sample")}
    finding = analyse([RECORDED / "gloo_raise_3"], known=known).findings[0]
    assert finding.evidence[-1] == "rank 3 on node-1, at step 5: it raised RuntimeError: bad sample"
    assert finding.cause_suspected == "its process ended or raised; the others wait for it"


def test_the_next_command_reads_the_stack_on_the_right_host() -> None:
    known = {3: RankKnowledge(3, host="node-1")}
    command = analyse([RECORDED / "gloo_sleep_3"], known=known).next[0].command
    assert command == "train-ledger stacks --launcher ssh --hosts node-1"
