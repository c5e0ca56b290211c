"""What people reported of hangs and of the tools that read dumps, and the right answer to each.

Numbers are those of issues and pull requests of pytorch/pytorch where nothing else is said. The inputs are
made here.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from hang.recorder import T0_NS, Job, answer_of, encoded
from train_ledger.hang import RankKnowledge, analyse
from train_ledger.render import verdict


def steps(world: int = 4, count: int = 3, **how: Any) -> Job:
    job = Job(world, **how)
    for _ in range(count):
        job.issue(range(world), done=True)
    return job


def standing(world: int = 4, *absent: int, **how: Any) -> Job:
    """All but some came to the next collective."""
    job = steps(world, **how)
    job.issue([rank for rank in range(world) if rank not in absent])
    return job


@pytest.mark.parametrize(
    "name",
    [
        "nccl_trace_rank_container-node02_{rank}",
        "run-17.comm_lib_trace_rank_{rank}",
        "_dump_{rank}.json",
        "rank{rank}.pickle",
    ],
)
def test_140879_the_rank_is_the_last_number_of_any_name(name: str, tmp_path: Path) -> None:
    answer = analyse([standing(4, 2).write(tmp_path, name=name, as_json="json" in name)])
    assert (answer.kind, answer.culprits, answer.unreadable) == ("missing_ranks", (2,), ())


def test_139280_the_sender_of_a_receive_is_its_peer() -> None:
    """Ranks 6 and 4 as stages 0 and 1: "recv 1<-0" on rank 4 waits for rank 6."""
    job = Job(8)
    job.group("pp", [6, 4], "pp")
    job.issue(range(8), done=True)
    job.post(4, "recv", 6, group="pp")
    assert answer_of(job).culprits == (6,)


def test_137969_members_of_a_batch_that_stay_scheduled_are_over_with_it() -> None:
    job = steps(2)
    job.send(0, 1)
    job.send(1, 0)
    for rank in range(2):
        job.close_batch(rank)
        for entry in job.entries[rank][-3:]:
            entry["p2p_seq_id"] = 1  # the batch has one number
    assert answer_of(job).verdict == "no_hang"


@pytest.mark.parametrize("ring", [12, 16])
def test_125173_rings_that_begin_at_different_points(ring: int) -> None:
    """Stage 0 issues five times what stage 1 does; their record ids have nothing to do with each other."""
    job = Job(4)
    job.group("a", [0, 1], "tp")
    job.group("b", [2, 3], "tp")
    for _ in range(8):
        for _ in range(5):
            job.issue([0, 1], group="a", done=True)
        job.issue([2, 3], group="b", done=True)
        job.issue(range(4), done=True)
    job.issue([0, 1, 3])
    answer = answer_of(job, ring=ring)
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (2,), 9)


def test_117883_equal_names_with_other_ranks_are_other_groups() -> None:
    """Group "9" is of ranks 0 and 1 here, of 2 and 3 there; rank 1 alone is behind."""
    near, far = Job(4), Job(4)
    near.group("9", [0, 1])
    far.group("9", [2, 3])
    near.issue([0, 1], group="9", done=True)
    near.issue([0], group="9")
    for _ in range(7):
        far.issue([2, 3], group="9", done=True)
    near.entries.update({rank: far.entries[rank] for rank in (2, 3)})
    contents = {rank: (near if rank < 2 else far).content(rank) for rank in range(4)}
    near.content = lambda rank, **_: contents[rank]  # type: ignore[method-assign]
    assert answer_of(near).culprits == (1,)


def test_166182_a_replica_that_hangs_does_not_accuse_the_other(tmp_path: Path) -> None:
    """torchft: both replicas have a default group of ranks 0 to 1; the files count 0 to 3."""
    for replica, job in enumerate((steps(2), standing(2, 0))):
        for local in range(2):
            (tmp_path / f"rank_{2 * replica + local}").write_bytes(encoded(job.content(local), as_json=False))
    answer = analyse([tmp_path])
    assert (answer.culprits, answer.victims_of) == ((2,), {2: (3,)})


def test_196968_the_rank_that_raised_is_the_one_without_a_dump(tmp_path: Path) -> None:
    answer = analyse([standing(3, 1).write(tmp_path, [0, 2])], world_size=3)
    assert (answer.culprits, answer.confidence, answer.missing_dumps) == ((1,), "low", (1,))
    assert "rank 1 left no dump: whether it joined is not known" in answer.findings[0].evidence


@pytest.mark.parametrize("left", [None, 0, 1, 40, 700])
def test_150652_a_dump_that_is_absent_empty_or_cut_costs_that_rank_alone(
    left: int | None, tmp_path: Path
) -> None:
    """Rank 3's process was killed while it wrote; rank 1 never came."""
    standing(4, 1).write(tmp_path)
    path = tmp_path / "rank_3"
    if left is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:left])
    answer = analyse([tmp_path], world_size=4)
    assert answer.culprits == (1,)
    assert answer.missing_dumps == ((3,) if left is None else ())
    assert [Path(it.file).name for it in answer.unreadable] == ([] if left is None else ["rank_3"])


def test_194559_uneven_all_to_all_is_legal_and_totals_that_differ_name_nobody() -> None:
    legal, odd = steps(3), steps(3)
    for rank, (size, out) in enumerate([(9, 3), (3, 6), (3, 6)]):
        legal.issue([rank], "all_to_all_single", size=[[size]], out=[[out]])
        odd.issue([rank], "all_to_all_single", size=[[size]], out=[[out + (rank == 1)]])
    assert (answer_of(legal).kind, answer_of(legal).culprits) == ("no_mismatch", ())
    assert (answer_of(odd).kind, answer_of(odd).culprits) == ("size_or_syntax_mismatch", ())


def test_180268_a_receive_from_any_source_and_a_new_prefix() -> None:
    job = standing(3, 1, backend="ncclx")
    job.receive_from_any(0)
    answer = answer_of(job)
    assert answer.culprits == (1,)


def test_177076_a_coalesced_collective_that_some_never_scheduled() -> None:
    job = steps(4)
    for rank in (0, 1, 3):
        for name in ("_broadcast_oop", "_broadcast_oop", "ALLGATHER_coalesced"):
            job.issue([rank], name)
            job.entries[rank][-1]["collective_seq_id"] = 4
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (2,), 4)


def test_137974_only_the_first_of_what_is_queued_matters() -> None:
    """25 operations wait behind the one that rank 2 does not come to: one finding, one number."""
    job = standing(4, 2)
    for _ in range(25):
        job.issue([0, 1, 3])
    answer = answer_of(job)
    assert (len(answer.findings), answer.seq, answer.culprits) == (1, 4, (2,))


def test_nccl_1730_all_came_and_none_finishes_blames_nobody() -> None:
    answer = answer_of(standing(8))
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "no_mismatch", ())
    assert any("dmesg" in it.command for it in answer.next)


def test_190396_a_wait_outside_of_collectives_points_to_the_stacks() -> None:
    answer = answer_of(steps())
    assert (answer.verdict, answer.culprits) == ("no_hang", ())
    assert any("train-ledger stacks" in it.command for it in answer.next)


@pytest.mark.parametrize("state", ["scheduled", "started"])
def test_nvrx_172_ranks_whose_hosts_ran_ahead_of_a_dead_gpu(state: str) -> None:
    """Two of eight GPUs fall while their hosts queue twelve operations more."""
    job = steps(8)
    job.issue([2, 6])
    job.issue([0, 1, 3, 4, 5, 7], done=True)
    for _ in range(12):
        job.issue(range(8))
    for entries in job.entries.values():
        for entry in entries:
            entry["state"] = state if entry["state"] == "scheduled" else "completed"
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.seq) == ("completion_laggard", (2, 6), 4)


@pytest.mark.parametrize("odd", [0, 5])
def test_normal_ranks_are_not_reported_because_the_first_one_is_odd(odd: int) -> None:
    job = steps(6)
    job.issue([rank for rank in range(6) if rank != odd], "all_reduce")
    job.issue([odd], "broadcast")
    answer = answer_of(job)
    assert (answer.culprits, answer.victims_of) == ((odd,), {odd: tuple(r for r in range(6) if r != odd)})


def test_134528_one_line_says_who() -> None:
    assert verdict(answer_of(standing(4, 2))) == "culprit: rank 2"


@pytest.mark.parametrize(
    ("backend", "entry", "culprits"),
    [
        ("nccl", {"state": "completed", "retired": False}, (1,)),
        ("nccl", {"state": "scheduled", "retired": True}, ()),
        ("gloo", {"state": "scheduled", "retired": True}, (1,)),
    ],
    ids=["done and not yet off the list", "off the list and not done: timed out", "gloo has no other sign"],
)
def test_166095_retired_is_not_done_but_over_gloo(
    backend: str, entry: dict[str, Any], culprits: tuple[int, ...]
) -> None:
    """Of number 4 all ranks have an entry; to number 5 rank 1 did not come."""
    job = steps(3, backend=backend)
    job.issue(range(3))
    for entries in job.entries.values():
        entries[-1].update(entry)
    if culprits:
        job.issue([0, 2])
    answer = answer_of(job)
    assert (answer.culprits, answer.verdict) == (culprits, "hang")


def test_a_dump_that_would_run_code_is_refused_and_the_rest_is_read(tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path}/ran",)

    standing(4, 1).write(tmp_path)
    (tmp_path / "rank_3").write_bytes(pickle.dumps({"version": "2.10", "entries": [Payload()]}))
    answer = analyse([tmp_path])
    assert answer.culprits == (1,)
    assert [Path(it.file).name for it in answer.unreadable] == ["rank_3"]
    assert not (tmp_path / "ran").exists()


def test_stale_dumps_of_an_attempt_an_hour_ago_are_listed_and_accuse_nobody(tmp_path: Path) -> None:
    standing(4, 1).write(tmp_path, name="attempt1_rank_{rank}")
    now = Job(4, begins_s=3700)
    for _ in range(5):
        now.issue(range(4), done=True)
    now.issue([0, 1, 2])
    now.write(tmp_path, name="attempt2_rank_{rank}")
    answer = analyse([tmp_path])
    assert answer.culprits == (3,)
    assert sorted(Path(it).name for it in answer.stale) == [f"attempt1_rank_{rank}" for rank in range(4)]


def test_gloo_with_an_empty_table_of_groups() -> None:
    answer = answer_of(standing(3, 1, backend="gloo"))
    assert answer.culprits == (1,)
    assert answer.group is not None
    assert answer.group.inferred


def test_a_rank_that_is_in_one_poll_alone_is_not_said_to_stand() -> None:
    """ray 64928: what is not known is not 0. Rank 0's dump is gone; rank 2 is behind and is the one named."""
    job = standing(4, 2)
    answer = answer_of(job, [1, 2, 3])
    assert (answer.culprits, answer.missing_dumps) == ((2,), (0,))


def test_a_step_that_takes_long_but_ends_is_no_hang() -> None:
    """dlrover 1727: a checkpoint of ten minutes lies between the last two operations."""
    job = steps()
    job.issue(range(4), done=True)
    for entries in job.entries.values():
        entries[-1]["time_created_ns"] = T0_NS + 600 * 10**9
    assert answer_of(job, known={0: RankKnowledge(0, phase="checkpoint")}).verdict == "no_hang"
