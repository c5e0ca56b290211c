"""Dumps that mean the same group are brought together, and those that do not are kept apart."""

from __future__ import annotations

from typing import Any

import pytest

from hang.recorder import Job, answer_of, dump_of
from train_ledger.hang.analysis import reason
from train_ledger.hang.dumps.dump import Dump, reduce_dump
from train_ledger.hang.dumps.dump_files import Dumps
from train_ledger.hang.reasoning.members import members_of


def dump(rank: int, content: dict[str, Any]) -> Dump:
    found = reduce_dump(content, file=f"rank_{rank}", rank=rank, host=None)
    assert found is not None
    return found


def concluded(*dumps: Dump, world: int) -> Any:
    return reason(Dumps(dumps), stacks={}, known={}, world_size=world)


def of_1_2(pg_id: int, ranks: list[int], numbers: int, *, pending: bool) -> dict[str, Any]:
    """A dump as torch 2.3 wrote it: groups by an id that counts the groups of the process alone."""
    entries = [
        {
            "record_id": number,
            "pg_id": pg_id,
            "seq_id": number + 1,
            "profiling_name": "nccl:all_reduce",
            "state": "scheduled" if pending and number + 1 == numbers else "completed",
            "retired": not (pending and number + 1 == numbers),
            "time_created_ns": 10**18 + number,
            "input_sizes": [[4]],
            "output_sizes": [[4]],
        }
        for number in range(numbers)
    ]
    return {"version": "1.2", "pg_config": {0: [0, 1, 2, 3], pg_id: ranks}, "entries": entries}


def test_before_1_4_one_group_has_another_id_on_each_of_its_ranks() -> None:
    """Ranks 0 and 2 share a group that is the first of rank 0 and the second of rank 2."""
    answer = concluded(
        dump(0, of_1_2(1, [0, 2], 5, pending=True)), dump(2, of_1_2(2, [0, 2], 4, pending=False)), world=4
    )
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (2,), 5)
    assert (answer.group.name, answer.group.ranks) == ("1", (0, 2))


def test_before_1_4_one_id_stands_for_another_group_on_each_rank() -> None:
    answer = concluded(
        dump(0, of_1_2(1, [0, 1], 5, pending=True)),
        dump(1, of_1_2(1, [0, 1], 4, pending=False)),
        dump(2, of_1_2(1, [2, 3], 9, pending=False)),
        dump(3, of_1_2(1, [2, 3], 9, pending=False)),
        world=4,
    )
    assert (answer.culprits, answer.group.ranks) == ((1,), (0, 1))


def test_two_backends_of_one_group_count_for_themselves() -> None:
    """cpu:gloo,cuda:nccl: number 2 over gloo has nothing to do with number 2 over nccl."""
    job = Job(3)
    for rank in range(3):
        for _ in range(4):
            job.issue([rank], done=True)
    for rank in range(3):
        for number in (1, 2):
            if (rank, number) != (1, 2):
                job.issue([rank], "gloo:broadcast", done=number == 1)
                job.entries[rank][-1].update(collective_seq_id=number, state="scheduled")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.seq, answer.op) == ("missing_ranks", (1,), 2, "broadcast")
    assert "over gloo" in answer.findings[0].evidence[0]


def test_a_rank_without_a_table_is_a_member_of_the_group_that_its_peers_list() -> None:
    job = Job(4)
    job.group("7", [1, 2], "tp")
    job.issue([1, 2], group="7", done=True)
    job.issue([1], group="7")
    bare = job.content(2) | {"pg_config": {}}
    answer = concluded(dump_of(job, 0), dump_of(job, 1), dump(2, bare), dump_of(job, 3), world=4)
    assert (answer.culprits, answer.confidence) == ((2,), "high")


def test_the_order_in_which_members_are_listed_makes_no_other_group() -> None:
    job = Job(2)
    job.issue(range(2), done=True)
    job.issue([0])
    other = job.content(1)
    other["pg_config"]["0"]["ranks"] = "[1, 0]"
    answer = concluded(dump_of(job, 0), dump(1, other), world=2)
    assert (answer.culprits, len(members_of([dump_of(job, 0), dump(1, other)]))) == ((1,), 1)


@pytest.mark.parametrize(
    "prefix", ["xccl", "hccl", "rccl", "ncclx", "nccl2", "mccl", "ucc", "fake", "custom_1"]
)
def test_any_backend_is_understood(prefix: str) -> None:
    job = Job(3, backend=prefix)
    for _ in range(3):
        job.issue(range(3), "brand_new_op", done=True)
    job.issue([0, 2], "brand_new_op")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.op) == ("missing_ranks", (1,), "brand_new_op")


def test_dumps_of_a_version_that_does_not_exist_yet_and_of_an_old_one_go_together() -> None:
    job = Job(3)
    job.issue(range(3), done=True)
    job.issue([0, 2])
    dumps = [
        dump(rank, job.content(rank) | {"version": version})
        for rank, version in enumerate(("2.4", "2.10", "9.1"))
    ]
    assert concluded(*dumps, world=3).culprits == (1,)


def test_a_rank_that_recorded_nothing_may_be_a_member_that_gloo_does_not_list() -> None:
    """Ranks 0 to 2 wait in a group of which rank 3 is a member, too; its dump is empty."""
    job = Job(4, backend="gloo")
    job.group("1", range(4), "tp")
    job.issue([0, 1, 2], group="1")
    answer = answer_of(job)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())
    assert any("whether rank 3 joined cannot be seen" in line for line in answer.not_observed)


def test_a_group_that_each_rank_calls_by_another_name_is_one() -> None:
    """pytorch 190396: the names that split_group makes differ from rank to rank."""
    job = Job(3)
    job.group("split:a1", range(3), "mesh")
    job.issue(range(3), group="split:a1", done=True)
    job.issue([0, 2], group="split:a1")
    contents = []
    for rank in range(3):
        content = job.content(rank)
        content["pg_config"][f"split:{rank}"] = content["pg_config"].pop("split:a1")
        content["entries"] = [it | {"process_group": (f"split:{rank}", "mesh")} for it in content["entries"]]
        contents.append(content)
    answer = concluded(*(dump(rank, content) for rank, content in enumerate(contents)), world=3)
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (1,), 2)
    assert answer.victims_of == {1: (0, 2)}


def test_before_1_4_a_group_without_entries_is_not_taken_for_another_of_the_same_ranks() -> None:
    """All are in both; rank 1 has not come to the first of them yet, and finished all of the second."""
    both = {0: [0, 1, 2, 3], 1: [0, 1, 2, 3]}
    dumps = []
    for rank in range(4):
        content = of_1_2(1, [0, 1, 2, 3], 5, pending=False) | {"pg_config": both}
        if rank != 1:
            content["entries"] += [
                entry | {"record_id": 5} for entry in of_1_2(0, [0, 1, 2, 3], 1, pending=True)["entries"]
            ]
        dumps.append(dump(rank, content))
    answer = concluded(*dumps, world=4)
    assert (answer.kind, answer.culprits, answer.group.name) == ("missing_ranks", (1,), "0")
