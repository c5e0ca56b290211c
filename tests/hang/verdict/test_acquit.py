"""A rank whose stack waits for others is their victim, whatever the dumps lack of it."""

from __future__ import annotations

import signal

from hang.recorder import Job, answer_of
from train_ledger.hang import RankKnowledge, RankStack, stacks
from train_ledger.hang.knowledge import TimedOut
from train_ledger.hang.stacks import Frame, Thread

C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def stack(rank: int, *frames: tuple[str, int, str]) -> RankStack:
    return RankStack(
        rank, 100 + rank, None, (Thread("MainThread", True, tuple(Frame(*it) for it in frames)),)
    )


def receiving(rank: int) -> RankStack:
    return stack(rank, (C10D, 2600, "recv"), ("/job/train.py", 30, "from_stage_before"))


def asleep(rank: int) -> RankStack:
    return stack(rank, ("/job/train.py", 37, "fetch_for_ever"))


def four_ranks(missing: set[int]) -> Job:
    job = Job(4, backend="gloo")
    job.issue(range(4), done=True)
    job.issue([rank for rank in range(4) if rank not in missing])
    return job


def test_a_rank_that_receives_over_gloo_is_not_accused_beside_the_one_that_sleeps() -> None:
    found = {0: receiving(0), 1: asleep(1)}
    answer = answer_of(four_ranks({0, 1}), stacks=found)
    assert answer.culprits == (1,)
    assert answer.victims_of == {1: (0, 2, 3)}
    assert any("not accused: rank 0" in line for line in answer.findings[0].evidence)


def test_where_only_such_ranks_did_not_come_nobody_is_accused() -> None:
    answer = answer_of(four_ranks({0, 1}), stacks={0: receiving(0), 1: receiving(1)})
    assert answer.verdict == "hang"
    assert answer.culprits == ()
    assert answer.confidence == "low"


def test_a_wait_of_c_for_the_store_or_for_a_send_counts_too() -> None:
    for name in ("c10d::TCPStore::doWait", "gloo::transport::tcp::UnboundBuffer::waitRecv"):
        waiting = stack(0, ("libtorch_cpu.so", 0, name), ("/job/train.py", 12, "exchange"))
        assert stacks.stand_of(waiting).where == "collective", name
        assert answer_of(four_ranks({0, 1}), stacks={0: waiting, 1: asleep(1)}).culprits == (1,)


def test_the_rank_that_sleeps_is_still_accused_alone() -> None:
    assert answer_of(four_ranks({1}), stacks={1: asleep(1)}).culprits == (1,)


def test_a_rank_without_a_dump_whose_own_watchdog_timed_out_there_had_come() -> None:
    """Its log speaks where its dump is missing; a report on another group or an earlier number does not."""
    job = Job(4)
    job.issue(range(4), done=True)
    job.issue([0, 1, 2])
    came = RankKnowledge(3, timed_out=(TimedOut(2, "ALLREDUCE", "0"),))
    elsewhere = RankKnowledge(3, timed_out=(TimedOut(2, "ALLREDUCE", "7"), TimedOut(1, "ALLREDUCE", "0")))
    assert answer_of(job, [0, 1, 2], known={3: came}).culprits == ()
    assert answer_of(job, [0, 1, 2], known={3: elsewhere}).culprits == (3,)


def test_who_raised_as_a_rank_without_a_dump_was_aborted_is_not_accused() -> None:
    """gloo aborted rank 3; ranks 1 and 2 raised as it went, and so never came to what rank 0 waits in."""
    reset = "RuntimeError: Read error: Connection reset by peer"
    known = {
        1: RankKnowledge(1, exception=reset),
        2: RankKnowledge(2, exception=reset),
        3: RankKnowledge(3, signal=signal.SIGABRT),
    }
    job = four_ranks({1, 2, 3})
    assert answer_of(job, [0, 1, 2], known=known).culprits == ()
    assert answer_of(job, [0, 1, 2], known={**known, 3: RankKnowledge(3)}).culprits == (1, 2)
