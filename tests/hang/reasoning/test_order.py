"""In a circle of waits the one that left its own order is the cause, and no stage of a pipeline is."""

from __future__ import annotations

from hang.recorder import Job, answer_of

SHARDS, STAGES = ("tp0", "tp1"), ("pp0", "pp1")


def pipeline() -> Job:
    """Four ranks: two stages of two shards; the later stage hands on before its shards meet, not after."""
    job = Job(4, backend="gloo")
    for name, ranks in (("tp0", [0, 1]), ("tp1", [2, 3])):
        job.group(name, ranks, "mesh_tp")
    for name, ranks in (("pp0", [0, 2]), ("pp1", [1, 3])):
        job.group(name, ranks, "mesh_pp")
    return job


def forward(job: Job) -> None:
    """The first stage's shards meet, it hands on, the second stage's shards meet."""
    job.issue([0, 1], group="tp0", size=((64,),), done=True)
    for group, ranks in (("pp0", [0, 2]), ("pp1", [1, 3])):
        job.issue(ranks, "broadcast", group=group, size=((64,),), done=True)
    job.issue([2, 3], group="tp1", size=((64,),), done=True)


def step(job: Job) -> None:
    forward(job)
    for group, ranks in (("tp0", [0, 1]), ("tp1", [2, 3])):
        job.issue(ranks, group=group, size=((2,),), done=True)
    job.issue(range(4), size=((1,),), done=True)


def test_who_left_the_loop_first_is_the_cause_and_not_its_shard() -> None:
    job = pipeline()
    for _ in range(3):
        step(job)
    job.issue([3], "barrier", size=())  # its loader ran out
    job.issue([0, 1], group="tp0", size=((64,),), done=True)
    job.issue([0, 2], "broadcast", group="pp0", size=((64,),), done=True)
    job.issue([1], "broadcast", group="pp1", size=((64,),))
    job.issue([2], group="tp1", size=((64,),))
    job.issue([0], group="tp0", size=((2,),))
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("cycle", (3,))
    assert "rank 3 issued 0 in" in " ".join(answer.findings[0].evidence)
    assert set(answer.victims_of[3]) == {0, 1, 2}
    assert any(it.command.endswith(" --entries --ranks 0,3") for it in answer.next), "of all groups"


def test_a_stage_that_always_took_another_order_is_not_accused() -> None:
    job = pipeline()
    for _ in range(3):
        step(job)
    forward(job)
    job.issue([0], group="tp0", size=((2,),))
    job.issue([1], size=((1,),))  # left out the meeting of its shards
    job.issue([2, 3], group="tp1", size=((2,),), done=True)
    job.issue([2, 3], size=((1,),))
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("cycle", (1,))


def two_queues(orders: list[str]) -> Job:
    """Each rank issues the same two operations in its own order, and its GPU takes them in that."""
    job = Job(len(orders))
    for name in "ab":
        job.group(name, range(len(orders)), name)
        job.issue(range(len(orders)), group=name, done=True)
    for rank, order in enumerate(orders):
        for name in order:
            job.issue([rank], group=name)
    return job


def test_two_ranks_that_queued_in_opposite_orders_are_a_circle() -> None:
    """Two have no majority; that they wait for each other is certain all the same."""
    answer = answer_of(two_queues(["ab", "ba"]))
    assert (answer.kind, answer.culprits, answer.confidence) == ("cycle", (0, 1), "medium")


def test_queues_of_one_order_are_no_circle() -> None:
    answer = answer_of(two_queues(["ab", "ab"]))
    assert (answer.kind, answer.culprits) == ("no_mismatch", ())


def test_of_four_queues_the_one_of_another_order_is_the_cause() -> None:
    answer = answer_of(two_queues(["ab", "ab", "ba", "ab"]))
    assert (answer.kind, answer.culprits) == ("cycle", (2,))


def test_members_of_a_tie_that_wait_for_each_other_elsewhere_are_not_accused_either() -> None:
    """Rank 1 left the loop for a barrier, and stands against rank 3 alone: rank 2 left no dump."""
    job = Job(4, backend="gloo")
    job.group("tp0", [0, 1], "tp")
    job.group("tp1", [2, 3], "tp")
    job.issue(range(4), done=True)
    for group, ranks in (("tp0", [0, 1]), ("tp1", [2, 3])):
        job.issue(ranks, group=group, done=True)
    job.issue([1], "barrier", size=())
    job.issue([0], group="tp0")
    job.issue([2, 3], group="tp1", done=True)
    job.issue([2, 3])
    answer = answer_of(job, [0, 1, 3])
    assert (answer.kind, answer.culprits) == ("collective_type_mismatch", ())
