"""all_to_all: the pair that disagrees is named, its members only where others agree on who is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from hang.recorder import Job, answer_of
from train_ledger.hang.analysis import reason
from train_ledger.hang.dumps.dump import reduce_dump
from train_ledger.hang.dumps.dump_files import Dumps

SPLITS = [[1, 2, 3, 4], [5, 6, 7, 8], [1, 1, 1, 1], [0, 9, 0, 9]]
"""What rank i sends to rank j."""


def expert_parallel(
    sent: list[list[int]],
    taken: list[list[int]],
    *,
    keys: tuple[str, str] = ("input_split_sizes", "output_split_sizes"),
) -> Job:
    job = Job(len(sent))
    job.issue(range(len(sent)), done=True)
    for rank, (row, expected) in enumerate(zip(sent, taken, strict=True)):
        size, out = [[sum(row), 8]], [[sum(expected), 8]]
        job.issue([rank], "all_to_all", size=size, out=out, more={keys[0]: row, keys[1]: expected})
    return job


def transposed(rows: list[list[int]]) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)]


def test_splits_that_fit_are_no_mismatch_however_uneven() -> None:
    answer = answer_of(expert_parallel(SPLITS, transposed(SPLITS)))
    assert (answer.kind, answer.culprits) == ("no_mismatch", ())


@pytest.mark.parametrize(
    "keys", [("input_split_sizes", "output_split_sizes"), ("input_splits", "output_splits")]
)
def test_one_pair_that_disagrees_is_named_and_nobody_accused(keys: tuple[str, str]) -> None:
    taken = transposed(SPLITS)
    taken[2][1] = 70
    answer = answer_of(expert_parallel(SPLITS, taken, keys=keys))
    assert (answer.kind, answer.culprits) == ("size_or_syntax_mismatch", ())
    assert any("rank 1 sends 7 to rank 2, which expects 70" in line for line in answer.findings[0].evidence)


@pytest.mark.parametrize("odd", [0, 3])
def test_who_disagrees_with_all_others_is_accused(odd: int) -> None:
    """Its router counted twice what it sends."""
    sent = [[2 * it for it in row] if rank == odd else row for rank, row in enumerate(SPLITS)]
    answer = answer_of(expert_parallel(sent, transposed(SPLITS)))
    assert (answer.kind, answer.culprits) == ("size_or_syntax_mismatch", (odd,))


def test_a_tensor_for_each_peer_tells_the_pairs_as_well() -> None:
    job = Job(3)
    sent: list[Any] = [[[4], [4], [4]], [[4], [4], [5]], [[4], [4], [4]]]
    for rank, tensors in enumerate(sent):
        job.issue([rank], "all_to_all", size=tensors, out=[[4], [4], [4]])
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("size_or_syntax_mismatch", ())
    assert any("rank 1 sends 5 to rank 2, which expects 4" in line for line in answer.findings[0].evidence)


def test_pairs_are_compared_by_the_places_in_the_group_not_by_rank() -> None:
    """The group lists its ranks as [3, 1]: split 0 is for rank 3."""
    job = Job(4)
    job.group("ep", [3, 1], "ep")
    job.issue(
        [3],
        "all_to_all",
        group="ep",
        size=[[6]],
        out=[[8]],
        more={"input_split_sizes": [2, 4], "output_split_sizes": [2, 6]},
    )
    job.issue(
        [1],
        "all_to_all",
        group="ep",
        size=[[7]],
        out=[[5]],
        more={"input_split_sizes": [6, 1], "output_split_sizes": [4, 1]},
    )
    assert answer_of(job).kind == "no_mismatch"


def test_pairs_among_the_dumps_that_are_there_are_compared() -> None:
    taken = transposed(SPLITS)
    taken[0][1] = 50
    answer = answer_of(expert_parallel(SPLITS, taken), [0, 1, 2])
    assert (answer.kind, answer.culprits) == ("size_or_syntax_mismatch", ())


@pytest.mark.parametrize("value", ["[1, 2]", [[1, 2], [3]], [-1, 2, 3, 4], {"a": 1}, None, [1.5] * 4])
def test_split_sizes_that_cannot_be_are_passed_over(value: Any) -> None:
    job = Job(4)
    job.issue(range(4), "all_to_all", size=[[8]], out=[[8]], more={"input_split_sizes": value})
    assert answer_of(job).kind == "no_mismatch"


@pytest.mark.parametrize(("version", "kind"), [("2.3", "no_mismatch"), ("2.10", "size_or_syntax_mismatch")])
def test_sizes_of_all_to_all_before_2_4_say_nothing(version: str, kind: str) -> None:
    job = Job(2)
    job.issue([0], "all_to_all", size=((8,),), out=((5,),))
    job.issue([1], "all_to_all", size=((2,),), out=((9,),))
    dumps = [
        reduce_dump(job.content(rank) | {"version": version}, file=f"rank_{rank}", rank=rank, host=None)
        for rank in range(2)
    ]
    answer = reason(Dumps(tuple(it for it in dumps if it)), stacks={}, known={}, world_size=2)
    assert (answer.kind, answer.culprits) == (kind, ())
