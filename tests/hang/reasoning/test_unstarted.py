"""With timing on: all came, one GPU has not begun what the others run."""

from __future__ import annotations

import pytest

from hang.recorder import Job, answer_of


def all_came(world: int, idle: list[int]) -> Job:
    job = Job(world)
    for _ in range(3):
        job.issue(range(world), done=True)
    job.issue(range(world))
    for rank in range(world):
        job.entries[rank][-1]["state"] = "scheduled" if rank in idle else "started"
    return job


@pytest.mark.parametrize("idle", [[0], [2], [1, 3]])
def test_the_gpu_that_has_not_begun_is_named(idle: list[int]) -> None:
    answer = answer_of(all_came(6, idle))
    assert (answer.kind, answer.culprits) == ("completion_laggard", tuple(idle))
    assert "it has not begun there" in answer.findings[0].evidence[0]


@pytest.mark.parametrize("idle", [[], [0, 1, 2], [0, 1, 2, 3, 4, 5]])
def test_where_it_runs_on_all_or_not_on_most_nobody_is(idle: list[int]) -> None:
    answer = answer_of(all_came(6, idle))
    assert (answer.kind, answer.culprits) == ("no_mismatch", ())


def test_what_waits_behind_an_operation_of_another_group_is_not_to_blame() -> None:
    """Rank 2's GPU is in the send that rank 3 does not receive; the collective is queued behind it."""
    job = all_came(6, [])
    job.group("pp", [2, 3], "pp")
    job.send(2, 3, group="pp", sides="send")
    job.issue(range(6))
    for rank in range(6):
        job.entries[rank][-1]["state"] = "scheduled" if rank == 2 else "started"
        job.entries[rank][3]["state"] = "completed"
    answer = answer_of(job)
    assert answer.culprits in ((), (3,))
    assert 2 not in answer.culprits
