"""What is kept of one group, where numbers begin anew, ids restart and entries are lost."""

from __future__ import annotations

from typing import Any

import pytest

from hang.recorder import Job, answer_of, dump_of
from train_ledger.hang.analysis import reason
from train_ledger.hang.dumps.dump import Dump, reduce_dump
from train_ledger.hang.dumps.dump_files import Dumps


def reduced(job: Job, rank: int, entries: list[dict[str, Any]]) -> Dump:
    found = reduce_dump(job.content(rank) | {"entries": entries}, file=f"rank_{rank}", rank=rank, host=None)
    assert found is not None
    return found


def steps(world: int = 3, count: int = 6, **how: Any) -> Job:
    job = Job(world, **how)
    for _ in range(count):
        job.issue(range(world), done=True)
    return job


def test_where_numbers_begin_anew_the_earlier_ones_are_over() -> None:
    """The group was made again under its name; rank 1 does not come to number 3 of the new one."""
    old, new = steps(count=50), steps(count=2)
    new.issue([0, 2])
    dumps = tuple(reduced(new, rank, old.entries[rank] + new.entries[rank]) for rank in range(3))
    assert {held.highest for dump in dumps for held in dump.groups} == {2, 3}
    answer = reason(Dumps(dumps), stacks={}, known={}, world_size=3)
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (1,), 3)


def test_ids_that_begin_anew_do_not_hide_the_order_of_issue() -> None:
    job = steps(count=4)
    entries = [entry | {"record_id": place % 2} for place, entry in enumerate(job.entries[0])]
    dump = reduced(job, 0, entries)
    assert (dump.active_only, dump.wrapped) == (False, True)
    assert [op.record for op in dump.groups[0].ops] == [0, 1, 2, 3]


def test_active_entries_of_before_and_after_a_reset_are_no_active_entries_alone() -> None:
    job = Job(1)
    for _ in range(4):
        job.issue([0])
    entries = [entry | {"record_id": it} for entry, it in zip(job.entries[0], (70, 90, 0, 200), strict=True)]
    assert not reduced(job, 0, entries).active_only


def test_what_was_dropped_by_a_reset_is_not_missing() -> None:
    """Rank 1 came to the slow group before its recorder was reset; ids begin at 0 again, numbers do not."""
    job = Job(2)
    job.group("slow", [0, 1], "slow")
    job.issue([0, 1], group="slow")
    for _ in range(5):
        job.issue([1], done=True)
    after = [entry | {"record_id": place} for place, entry in enumerate(job.entries[1][3:])]
    dumps = (dump_of(job, 0), reduced(job, 1, after))
    answer = reason(Dumps(dumps), stacks={}, known={}, world_size=2)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())


def test_a_ring_full_of_pending_entries_is_told_by_the_other_ranks() -> None:
    """Rank 2's ring of 20 holds nothing but what is queued; the others show that done entries are dumped."""
    job = Job(3)
    job.group("slow", [0, 2], "slow")
    job.group("queued", [1, 2], "queued")
    job.issue([0, 2], group="slow")
    job.issue([1, 2], group="queued", done=True)
    for _ in range(20):
        job.issue([2], group="queued")
    for _ in range(10):
        job.issue([1], group="queued")
    assert dump_of(job, 2, ring=20).active_only  # alone it cannot be told
    assert answer_of(job, ring=20).culprits == ()


@pytest.mark.parametrize("text", [True, False], ids=["numbers as text", "as numbers"])
def test_the_status_of_every_group_tells_who_came_in_dumps_of_active_entries(text: bool) -> None:
    """Rank 1 finished the tensor parallel call, so its dump does not show it; its status does."""
    job = Job(4)
    job.group("1", [0, 1], "tp")
    job.group("4", [0, 1, 2, 3], "all")
    job.issue([0, 1], group="1", done=True)
    job.issue([0], group="1")
    job.issue([1], group="1", done=True)
    job.issue([1, 2, 3], group="4")
    counts = {"0": 0, "1": 2, "2": 1}
    job.enqueued = {rank: {it: str(n) if text else n for it, n in counts.items()} for rank in range(4)}  # type: ignore[misc]
    answer = answer_of(job, active_only=True)
    assert (answer.kind, answer.culprits) == ("completion_laggard", (0,))


def test_a_cut_dump_whose_status_says_that_it_came_is_not_accused() -> None:
    job = Job(3)
    job.group("1", [0, 1, 2], "dp")
    for _ in range(3):
        job.issue(range(3), group="1", done=True)
    job.issue(range(3), group="1")
    job.enqueued = {2: {"0": 0, "1": 4}}
    cut = reduce_dump(
        job.content(2) | {"entries": job.entries[2][:2]}, file="rank_2", rank=2, host=None, cut="ends early"
    )
    assert cut is not None
    answer = reason(Dumps((dump_of(job, 0), dump_of(job, 1), cut)), stacks={}, known={}, world_size=3)
    assert (answer.kind, answer.culprits) == ("no_mismatch", ())


def test_most_members_absent_from_dumps_of_active_entries_may_be_over_with_it() -> None:
    job = Job(5)
    job.issue(range(5), done=True)
    job.issue([3])
    job.issue([0, 1, 2, 4], done=True)
    answer = answer_of(job, active_only=True)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())


def test_times_that_are_0_or_null_change_nothing() -> None:
    for value in (0, None):
        job = steps()
        job.issue([0, 2])
        for entries in job.entries.values():
            for entry in entries:
                done = entry["state"] == "completed"
                entry.update(time_created_ns=value, time_discovered_completed_ns=1 if done else value)
        assert answer_of(job).culprits == (1,)


def test_numbers_as_text_in_every_place() -> None:
    job = steps()
    job.issue([0, 2])
    for entries in job.entries.values():
        for entry in entries:
            entry.update(
                {key: str(entry[key]) for key in ("collective_seq_id", "p2p_seq_id", "record_id", "op_id")}
            )
    assert answer_of(job).culprits == (1,)
