"""A dump that lacks what others completed is of another time, and no evidence against its rank."""

from __future__ import annotations

import pytest

from hang.recorder import Job, answer_of, dump_of
from train_ledger.answer import HangAnswer
from train_ledger.hang.analysis import reason
from train_ledger.hang.dumps.dump import reduce_dump
from train_ledger.hang.dumps.dump_files import Dumps


def run(collectives: int, world: int = 4, *, begins_s: int = 0) -> Job:
    job = Job(world, begins_s=begins_s)
    for _ in range(collectives):
        job.issue(range(world), done=True)
    return job


def together(*parts: tuple[Job, list[int]]) -> HangAnswer:
    """All dumps in one folder; the first are those of the job that is asked about."""
    dumps = [dump_of(job, rank) for job, ranks in parts for rank in ranks]
    return reason(Dumps(tuple(dumps)), stacks={}, known={}, world_size=parts[0][0].world)


@pytest.mark.parametrize("died_at", [3, 90])
def test_a_rank_of_which_only_an_earlier_attempts_dump_is_left_has_none(died_at: int) -> None:
    """Rank 2 wrote nothing in this attempt; its old dump, further on or behind, does not say where it is."""
    before = run(died_at)
    now = run(40, begins_s=1000)
    now.issue([0, 1, 3])
    answer = together((now, [0, 1, 3]), (before, [2]))
    assert (answer.stale, answer.missing_dumps) == (("rank_2",), (2,))
    assert (answer.culprits, answer.confidence) == ((2,), "low")
    assert any("rank 2 is of another time" in line for line in answer.findings[0].evidence)
    assert any("set aside" in line for line in answer.not_observed)
    assert not any("none was found" in line for line in answer.not_observed)


def test_one_new_dump_among_the_old_ones_is_not_the_stale_one() -> None:
    now = run(3, begins_s=5000)
    now.issue([0, 1, 3])
    before = run(40)
    answer = together((now, [0, 1, 3]), (before, [2]))
    assert answer.stale == ("rank_2",)


def test_a_laggard_is_no_old_dump() -> None:
    job = run(40)
    job.issue([0, 1, 3])
    answer = answer_of(job)
    assert (answer.stale, answer.culprits, answer.confidence) == ((), (2,), "high")


def test_who_is_over_with_a_broadcast_early_proves_nothing_of_the_others() -> None:
    job = run(4)
    job.issue([0], "broadcast", done=True)
    job.issue([1, 2], "broadcast")
    answer = answer_of(job)
    assert (answer.stale, answer.culprits) == ((), (3,))


def test_dumps_of_an_attempt_with_more_ranks_are_none_of_this_one() -> None:
    """Eight ranks were started again as four; the dumps of the other four are still there."""
    before, now = run(9, world=8), run(5, begins_s=30)
    now.issue([0, 1, 3])
    answer = together((now, [0, 1, 2, 3]), (before, [6, 7]))
    assert (answer.stale, answer.culprits) == (("rank_6", "rank_7"), (2,))
    assert answer.missing_dumps == ()


def test_replicas_of_one_size_are_all_of_this_job() -> None:
    """torchft: each replica lists ranks 0 and 1."""
    job = run(3, world=2)
    dumps = [
        reduce_dump(job.content(rank % 2), file=f"rank_{rank}", rank=rank, host=None) for rank in range(6)
    ]
    answer = reason(Dumps(tuple(filter(None, dumps))), stacks={}, known={})
    assert (answer.verdict, answer.stale) == ("no_hang", ())


@pytest.mark.parametrize("died_at", [3, 90])
def test_of_active_entries_alone_numbers_and_times_tell(died_at: int) -> None:
    """In both attempts all is pending that the dumps show; rank 2 has but the dump of the first."""
    before, now = run(died_at), run(40, begins_s=1000)
    before.issue([2])
    now.issue([0, 1, 3])
    dumps = [dump_of(now, rank, active_only=True) for rank in (0, 1, 3)]
    answer = reason(Dumps((*dumps, dump_of(before, 2, active_only=True))), stacks={}, known={}, world_size=4)
    assert (answer.stale, answer.culprits, answer.confidence) == (("rank_2",), (2,), "low")


def test_a_gpu_that_stands_for_long_is_no_old_dump() -> None:
    """Its peers wait in the next operation, which they issued ten minutes later."""
    job = run(40)
    job.issue([3])
    job.issue([0, 1, 2], done=True)
    job.issue([0, 1, 2])
    for rank in range(3):
        job.entries[rank][-1]["time_created_ns"] += 600 * 10**9
    answer = answer_of(job, active_only=True)
    assert (answer.stale, answer.culprits) == ((), (3,))
