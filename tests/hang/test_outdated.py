"""A dump that lacks what others completed is of another time, and no evidence against its rank."""

from __future__ import annotations

import pytest

from hang.recorder import Job, answer_of, dump_of
from train_ledger.answer import HangAnswer
from train_ledger.hang.analysis import reason
from train_ledger.hang.dump_files import Dumps


def run(collectives: int, world: int = 4, *, begins_s: int = 0) -> Job:
    job = Job(world, begins_s=begins_s)
    for _ in range(collectives):
        job.issue(range(world), done=True)
    return job


def together(*parts: tuple[Job, list[int]]) -> HangAnswer:
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
    assert any("left no dump" in line for line in answer.findings[0].evidence)


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
