"""From a few lines that tell a job to the rank that is named."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hang.recorder import Job, answer_of, dump_of
from train_ledger.answer import HangAnswer, to_json
from train_ledger.hang import RankKnowledge
from train_ledger.hang.analysis import analyse, reason
from train_ledger.hang.dumps.dump import reduce_dump
from train_ledger.hang.dumps.dump_files import Dumps
from train_ledger.render import verdict


def healthy(world: int = 4, **how: Any) -> Job:
    """A job that has run three collectives."""
    job = Job(world, **how)
    for _ in range(3):
        job.issue(range(world), done=True)
    return job


def others(world: int, *ranks: int) -> list[int]:
    return [rank for rank in range(world) if rank not in ranks]


def test_a_job_with_nothing_pending_does_not_hang_and_the_stacks_are_next() -> None:
    answer = answer_of(healthy())
    assert (answer.verdict, answer.culprits, answer.findings) == ("no_hang", (), ())
    assert answer.next[0].command == "train-ledger stacks"


def test_a_rank_that_never_comes() -> None:
    job = healthy()
    job.issue([0, 1, 3], "all_gather_into_tensor")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.seq, answer.op) == (
        "missing_ranks",
        (2,),
        4,
        "all_gather_into_tensor",
    )
    assert answer.findings[0].waiting == (0, 1, 3)
    assert answer.findings[0].evidence[1] == "rank 2 last issued number 3 there: all_reduce, done"
    assert answer.findings[0].frame == "train.py:88 train_step"


def test_the_walk_through_of_a_rank_dependent_check() -> None:
    """Rank 5 all_reduces a flag of one element where its seven peers gather parameters."""
    job = healthy(8)
    job.issue(others(8, 5), "_allgather_base", size=[[2097152]], out=[[16777216]])
    job.issue(
        [5],
        "all_reduce",
        size=[[1]],
        frames=[{"name": "_check_batch", "filename": "/job/train.py", "line": 88}],
    )
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.seq) == ("collective_type_mismatch", (5,), 4)
    finding = answer.findings[0]
    assert (finding.op, finding.others_op, finding.frame) == (
        "all_reduce",
        "all_gather_into_tensor",
        "train.py:88 _check_batch",
    )
    assert answer.victims_of == {5: (0, 1, 2, 3, 4, 6, 7)}
    assert answer.confidence == "high"


def test_the_walk_through_where_hosts_run_ahead() -> None:
    """Sharded training of 8 ranks: gather, gather, scatter. Rank 5 alone asks all whether a batch is bad.

    From there on each of its entries stands one number later than those of its peers, which is no news: the
    first number at which they differ is told, and what rank 5 brought to it.
    """
    job = Job(8)
    layer = [("_allgather_base", [[64]], [[512]]), ("_reduce_scatter_base", [[512]], [[64]])]
    for _ in range(20):
        for op, size, out in layer:
            job.issue(range(8), op, size=size, out=out, done=True)
    job.issue(
        [5], "all_reduce", size=[[1]], frames=[{"name": "is_bad", "filename": "/job/data.py", "line": 7}]
    )
    for _ in range(3):
        for op, size, out in layer:
            job.issue(range(8), op, size=size, out=out)
    answer = answer_of(job)
    finding = answer.findings[0]
    assert (answer.kind, answer.culprits, answer.seq) == ("collective_type_mismatch", (5,), 41)
    assert (finding.op, finding.others_op) == ("all_reduce", "all_gather_into_tensor")
    assert (finding.frame, len(answer.findings)) == ("data.py:7 is_bad", 1)
    assert answer.victims_of == {5: (0, 1, 2, 3, 4, 6, 7)}


def test_one_of_several_equal_calls_left_out_shows_at_the_next_kind() -> None:
    job = healthy()
    job.issue([0, 1, 2], "all_reduce", done=True)
    job.issue([3], "barrier")
    job.issue([0, 1, 2], "all_reduce")
    job.issue([3], "all_reduce")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.seq) == ("collective_type_mismatch", (3,), 4)


@pytest.mark.parametrize("odd", [0, 5])
def test_sizes_are_judged_by_majority_whoever_is_odd(odd: int) -> None:
    job = healthy(6)
    job.issue(others(6, odd), size=[[2]])
    job.issue([odd], size=[[4]])
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("size_or_syntax_mismatch", (odd,))
    assert any("brought all_reduce [4]" in line for line in answer.findings[0].evidence)


def test_types_of_elements_are_judged_when_sizes_agree() -> None:
    job = healthy()
    job.issue([0, 1, 3])
    job.issue([2], dtype="BFloat16")
    assert (answer_of(job).kind, answer_of(job).culprits) == ("collective_dtype_mismatch", (2,))


@pytest.mark.parametrize("odd", [0, 2])
def test_who_coalesces_another_number_of_parts_is_odd(odd: int) -> None:
    job = healthy()
    for rank in range(4):
        for _ in range(2 if rank == odd else 3):
            job.issue([rank], "all_gather_into_tensor")
        job.issue([rank], "all_gather_into_tensor_coalesced")
        for entry in job.entries[rank][3:]:
            entry["collective_seq_id"] = 4
    assert (answer_of(job).kind, answer_of(job).culprits) == ("size_or_syntax_mismatch", (odd,))


def test_a_tie_accuses_nobody() -> None:
    job = healthy(2)
    job.issue([0], "broadcast")
    job.issue([1], "all_reduce")
    answer = answer_of(job)
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "collective_type_mismatch", ())
    assert answer.confidence == "low"
    assert "nobody is accused: no side has the majority" in answer.findings[0].evidence


def test_in_a_tie_all_that_came_wait_the_one_that_aborted_too() -> None:
    """Of three, rank 0 left no dump; ranks 1 and 2 brought different sizes, and gloo ended rank 2's side."""
    job = healthy(3, backend="gloo")
    job.issue([1], size=[[4]])
    job.issue([2], size=[[8]], done=True)
    answer = answer_of(job, [1, 2])
    assert (answer.kind, answer.culprits) == ("size_or_syntax_mismatch", ())
    assert answer.findings[0].waiting == (1, 2)
    assert verdict(answer) == (
        "nobody to blame: ranks 1-2 came to all_reduce with different sizes; "
        "with no dump of rank 0 neither side has a majority"
    )


@pytest.mark.parametrize(
    ("op", "sizes"),
    [
        ("gather", [[[4]], [], [], []]),
        ("broadcast", [[[4]], [], [[4]], [[4]]]),
        ("all_reduce", [[[2, 2]], [[4]], [[4, 1]], [[1, 4]]]),
        ("sparse_all_reduce", [[[1]], [[2]], [[3]], [[4]]]),
    ],
)
def test_what_may_differ_is_no_mismatch(op: str, sizes: list[Any]) -> None:
    job = healthy()
    for rank, size in enumerate(sizes):
        job.issue([rank], op, size=size)
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("no_mismatch", ())
    assert any("dmesg" in command.command for command in answer.next)


def test_uneven_all_gather_is_legal_where_all_expect_the_same_list() -> None:
    job = healthy(3)
    for rank, size in enumerate([2, 3, 5]):
        job.issue([rank], "all_gather", size=[[size]], out=[[2], [3], [5]])
    assert answer_of(job).kind == "no_mismatch"


def test_all_to_all_whose_totals_differ_accuses_nobody() -> None:
    job = healthy(2)
    job.issue([0], "all_to_all", size=[[8]], out=[[5]])
    job.issue([1], "all_to_all", size=[[4]], out=[[9]])
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("size_or_syntax_mismatch", ())
    assert any("12 elements and expect 14" in line for line in answer.findings[0].evidence)


def test_a_gpu_that_stands_while_its_host_ran_ahead() -> None:
    job = healthy()
    job.issue([3])
    job.issue([0, 1, 2], done=True)
    for _ in range(3):
        job.issue(range(4))
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.seq) == ("completion_laggard", (3,), 4)
    assert "ranks 0-2 finished number 4 of group 0 (default_pg)" in answer.findings[0].evidence


def test_a_reduce_that_ends_early_on_some_is_no_stuck_gpu() -> None:
    """Rank 3 never came; on ranks 1 and 2 the reduce is over, its root 0 still waits."""
    job = healthy()
    job.issue([0], "reduce")
    job.issue([1, 2], "reduce", done=True)
    job.issue([1, 2])
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("missing_ranks", (3,))
    assert answer.victims_of == {3: (0, 1, 2)}


def grid(**how: Any) -> Job:
    """Eight ranks, tensor parallel in pairs, data parallel across."""
    job = Job(8, **how)
    for pair in range(4):
        job.group(f"tp{pair}", [2 * pair, 2 * pair + 1], "tp")
    for side in range(2):
        job.group(f"dp{side}", [side, side + 2, side + 4, side + 6], "dp")
    for _ in range(2):
        for name, (_desc, ranks) in list(job.groups.items()):
            job.issue(ranks, group=name, done=True)
    return job


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_one_root_under_a_chain_over_groups(backend: str) -> None:
    """Rank 5 stands in its loader: 4 waits for it in tp2, the rest wait for 4 and 5 in dp."""
    job = grid(backend=backend)
    job.issue([4], group="tp2")
    for pair in (0, 1, 3):
        job.issue([2 * pair, 2 * pair + 1], group=f"tp{pair}", done=True)
    job.issue([0, 2, 6], group="dp0")
    job.issue([1, 3, 7], group="dp1")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("missing_ranks", (5,))
    assert answer.victims_of == {5: (0, 1, 2, 3, 4, 6, 7)}
    assert len(answer.findings) == 1
    assert answer.group is not None
    assert answer.group.name == "tp2"


def test_a_rank_that_misses_a_collective_and_a_send_is_named_for_the_collective() -> None:
    job = grid()
    job.group("pp", [5, 7], "pp")
    job.send(5, 7, group="pp", sides="recv")
    job.issue([4], group="tp2")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("missing_ranks", (5,))
    assert answer.victims_of == {5: (4, 7)}


def test_a_tie_in_a_pair_is_settled_by_the_other_pairs() -> None:
    job = grid()
    for pair in (0, 1, 3):
        job.issue([2 * pair, 2 * pair + 1], group=f"tp{pair}", done=True)
    job.issue([4], group="tp2")
    job.issue([5], "broadcast", group="tp2")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.confidence) == ("collective_type_mismatch", (5,), "medium")
    assert "a tie in this group" in answer.findings[0].evidence[-1]


def test_who_left_out_one_call_and_waits_further_on_broke_the_order() -> None:
    """Rank 5 leaves out its tensor parallel call and waits in a barrier for those who wait for it."""
    job = grid()
    for _ in range(2):
        for name, (_desc, ranks) in list(job.groups.items()):
            if name != "0":
                job.issue(ranks, group=name, done=True)
        job.issue(range(8), "barrier", done=True)
    for pair in (0, 1, 3):
        job.issue([2 * pair, 2 * pair + 1], group=f"tp{pair}", done=True)
    job.issue([4], group="tp2")
    job.issue([1, 3, 5, 7], group="dp1", done=True)
    job.issue([0, 2, 6], group="dp0")
    job.issue([1, 3, 5, 7], "barrier")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("cycle", (5,))
    assert "rank 5 issued 0 in tp where 1 are usual" in answer.findings[0].evidence[1]


def test_members_that_gloo_does_not_list_are_inferred_from_groups_of_the_same_kind() -> None:
    job = Job(4, backend="gloo")
    job.group("1", [0, 1], "tp")
    job.group("2", [2, 3], "tp")
    job.issue(range(4), done=True)
    job.issue([0, 1], group="1", done=True)
    job.issue([2], group="2")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("missing_ranks", (3,))


def test_who_is_alone_in_a_group_that_gloo_does_not_list_waits_for_nobody_knows_whom() -> None:
    job = Job(4, backend="gloo")
    job.group("1", [0, 1], "undefined")
    job.issue(range(4), done=True)
    job.issue([0], group="1")
    answer = answer_of(job)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())
    assert any("rank 0 alone recorded in it" in line for line in answer.not_observed)


def test_two_roots_are_two_findings_and_one_union() -> None:
    job = grid()
    job.issue([4], group="tp2")
    job.issue([0], group="tp0")
    answer = answer_of(job)
    assert answer.culprits == (1, 5)
    assert [finding.culprits for finding in answer.findings] == [(5,), (1,)]
    assert answer.victims_of == {1: (0,), 5: (4,)}


def test_ranks_that_take_two_groups_in_opposite_order_are_a_cycle() -> None:
    job = healthy(2)
    job.group("a", [0, 1])
    job.group("b", [0, 1])
    job.issue([0], group="a")
    job.issue([1], group="b")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits, answer.verdict) == ("cycle", (0, 1), "hang")


def test_the_one_whose_order_departs_from_its_peers_is_the_cause_of_a_cycle() -> None:
    job = healthy()
    job.group("a", range(4))
    job.group("b", range(4))
    job.issue([0, 1, 3], group="a")
    job.issue([2], group="b")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("cycle", (2,))
    assert answer.victims_of == {2: (0, 1, 3)}


def test_a_receive_without_a_send_names_the_partner() -> None:
    job = healthy()
    job.group("pp", [3, 1])  # not sorted: places in the group are places in this list
    job.send(1, 3, group="pp", sides="recv")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("p2p_unpaired", (1,))
    assert "recv from rank 1 to rank 3" in answer.findings[0].evidence[0]


def test_two_receives_that_wait_for_each_other_are_a_cycle() -> None:
    job = healthy()
    job.send(0, 1, sides="recv")
    job.send(1, 0, sides="recv")
    answer = answer_of(job)
    assert (answer.kind, answer.culprits) == ("cycle", (0, 1))


def test_a_receive_from_any_source_names_nobody() -> None:
    job = healthy(2)
    job.receive_from_any(1)
    answer = answer_of(job)
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "p2p_unpaired", ())


def test_members_of_a_finished_batch_are_not_pending() -> None:
    job = healthy(2)
    job.send(0, 1)
    for rank in (0, 1):
        job.close_batch(rank)
    assert answer_of(job).verdict == "no_hang"


def test_in_dumps_of_active_entries_absence_means_done() -> None:
    job = healthy()
    job.issue([0, 1, 3])
    answer = answer_of(job, active_only=True)
    assert (answer.kind, answer.culprits) == ("missing_ranks", (2,))


def test_an_entry_that_fell_off_the_ring_is_not_missing() -> None:
    """Rank 1's ring holds nothing of the slow group any more; that it came there cannot be excluded."""
    job = Job(3)
    job.group("slow", [0, 1])
    job.issue([0], group="slow")
    for _ in range(30):
        job.issue([1, 2], group="0", done=True)
    answer = answer_of(job, ring=20)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())
    assert any("cannot be seen" in line for line in answer.not_observed)


@pytest.mark.parametrize(
    ("how", "culprits"),
    [({"ring": 20}, ()), ({"active_only": True}, (0,))],
    ids=["fell off the ring", "came, and what is not active is over: rank 0's GPU stands"],
)
def test_the_recorders_own_count_says_that_a_rank_came(how: dict[str, Any], culprits: Any) -> None:
    job = Job(2)
    job.group("busy", [0, 1])
    job.issue([0])
    job.issue([1], done=True)
    for _ in range(30):
        job.issue([1], group="busy", done=True)
    job.enqueued = {1: {"0": 1}}
    assert answer_of(job, **how).culprits == culprits


@pytest.mark.parametrize(("count", "culprits"), [({"0": 1}, (1,)), ({}, ())], ids=["counted", "not known"])
def test_the_recorders_own_count_says_that_a_rank_did_not_come(
    count: dict[str, int], culprits: tuple[int, ...]
) -> None:
    """All that rank 1 recorded of the group of all fell off its ring; its count stays at what was before."""
    job = Job(4)
    job.group("busy", [1, 2])
    job.issue(range(4), done=True)
    for _ in range(30):
        job.issue([1, 2], group="busy", done=True)
    job.issue([0, 2, 3])
    job.enqueued = {1: count}
    assert answer_of(job, ring=20).culprits == culprits


@pytest.mark.parametrize(("stuck", "culprits"), [([4], (4,)), ([1, 2, 3, 4], ())])
def test_what_most_do_not_finish_is_no_fault_of_theirs(stuck: list[int], culprits: tuple[int, ...]) -> None:
    """All came to the second operation, which is over on some; their hosts all went on to the third."""
    job = Job(5)
    job.issue(range(5), done=True)
    job.issue([rank for rank in range(5) if rank not in stuck], done=True)
    job.issue(stuck)
    job.issue(range(5))
    assert answer_of(job).culprits == culprits


def test_over_gloo_an_end_that_is_not_recorded_yet_accuses_nobody() -> None:
    """A live dump of a job that runs: the host of rank 0 went on before the recorder learned of the end."""
    job = Job(4, backend="gloo")
    job.issue(range(4), done=True)
    job.issue([1, 2, 3], done=True)
    job.issue([0])
    job.issue(range(4))
    assert answer_of(job).culprits == ()


@pytest.mark.parametrize(("age_s", "confidence"), [(3, "low"), (30, "high")])
def test_a_wait_that_has_only_begun_is_no_sure_sign(age_s: float, confidence: str, tmp_path: Path) -> None:
    """Dumps of a job that runs: rank 1 is one operation behind, for now."""
    job = Job(3)
    job.issue(range(3), done=True)
    job.issue([0, 2])
    folder = job.write(tmp_path)
    written = job.entries[0][-1]["time_created_ns"] / 1e9 + age_s
    for file in folder.iterdir():
        os.utime(file, (written, written))
    answer = analyse([folder])
    assert (answer.culprits, answer.confidence) == ((1,), confidence)
    assert ("may be a job that runs" in answer.findings[0].evidence[0]) == (confidence == "low")


def test_one_name_for_several_groups_is_not_mixed_up() -> None:
    """split_group may give one name to several sets of ranks."""
    job = Job(4)
    other = Job(4)
    job.group("split", [0, 1])
    other.group("split", [2, 3])
    for ranks, half in (([0, 1], job), ([2, 3], other)):
        half.issue(ranks, group="split", done=True)
    job.issue([0], group="split")
    dumps = [dump_of(half, rank) for half, ranks in ((job, [0, 1]), (other, [2, 3])) for rank in ranks]
    answer = reason(Dumps(tuple(dumps)), stacks={}, known={})
    assert answer.culprits == (1,)
    assert answer.group is not None
    assert answer.group.ranks == (0, 1)


def test_replicas_that_number_their_ranks_from_0_are_told_apart() -> None:
    """torchft: each replica group is a world of its own; file names count over all."""
    replica = Job(2)
    replica.issue([0, 1], done=True)
    replica.issue([0])
    healthy_one = Job(2)
    healthy_one.issue([0, 1], done=True)
    parts = [(healthy_one, 0, 0), (healthy_one, 1, 1), (replica, 0, 2), (replica, 1, 3)]
    dumps = [
        reduce_dump(job.content(local), file=f"rank_{rank}", rank=rank, host=None)
        for job, local, rank in parts
    ]
    answer = reason(Dumps(tuple(filter(None, dumps))), stacks={}, known={})
    assert (answer.culprits, answer.victims_of) == ((3,), {3: (2,)})


def test_dumps_without_any_entry_say_nothing() -> None:
    answer = answer_of(Job(3))
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())


def test_a_rank_without_a_dump_is_a_lead_and_no_more() -> None:
    job = healthy(4)
    job.issue([0, 1, 3])
    answer = answer_of(job, [0, 1, 3])
    assert (answer.kind, answer.culprits, answer.confidence) == ("missing_ranks", (2,), "low")
    assert answer.missing_dumps == (2,)


def test_a_rank_without_a_dump_is_no_suspect_where_another_is_the_root() -> None:
    job = healthy(4)
    job.issue([0, 1])
    answer = answer_of(job, [0, 1, 3])
    assert (answer.culprits, answer.missing_dumps, answer.confidence) == ((3,), (2,), "medium")


def test_who_left_no_dump_is_no_suspect_where_another_group_stands_by_itself() -> None:
    """Ranks 2 and 3 came both to what they have pending first, and it stands: no other rank can be why.

    The clock of rank 0 is behind, so that its wait seems to have begun before.
    """
    job = healthy(4)
    pair = job.group("7", [2, 3], "tp")
    job.issue([2, 3], group=pair)
    job.issue([0, 2, 3])
    job.entries[0][-1]["time_created_ns"] -= 10**10
    answer = answer_of(job, [0, 2, 3])
    assert (answer.kind, answer.culprits, answer.missing_dumps) == ("no_mismatch", (), (1,))
    assert any("whether rank 1 joined cannot be seen" in line for line in answer.not_observed)


def test_of_two_without_a_dump_the_one_that_is_waited_for_first_is_the_lead() -> None:
    """Rank 2 waits for 1, and what waits for 3 stands behind that, although its times say otherwise."""
    job = healthy(4)
    job.group("7", [1, 2], "tp")
    job.group("8", [2, 3], "dp")
    job.issue([2], group="7")
    job.issue([2], group="8")
    job.entries[2][-2]["time_created_ns"] += 10**10
    assert answer_of(job, [0, 2]).culprits == (1,)


def test_where_most_of_a_group_did_not_come_the_accusation_is_weak() -> None:
    """Rank 2 calls what nobody else does; half of the others wait for it, half have no more to do."""
    job = healthy(8)
    half = job.group("7", [0, 1, 2, 3], "dp")
    job.issue([2], "all_gather")
    job.issue([0, 1, 3], group=half)
    answer = answer_of(job)
    assert answer.confidence == "low"
    assert any("one operation too many" in line for line in answer.findings[0].evidence)


def test_short_rings_full_of_pending_entries_accuse_nobody_of_having_finished() -> None:
    """All ran ahead; of rank 1 an older pending operation is left, of the others it fell off."""
    job = healthy(3)
    pair = job.group("7", [0, 2], "tp")
    for _ in range(4):
        job.issue([0, 1, 2])
        job.issue([0, 2], group=pair)
    before = {rank: {"0": 0, "7": 0} for rank in range(3)}
    dumps = len(job.entries[1])
    job.enqueued = {rank: {"0": dumps, "7": 4} for rank in (0, 2)} | {1: {"0": dumps}}
    job.completed = {rank: {"0": dumps - 4, "7": 0} for rank in before}
    assert answer_of(job, ring=4).culprits == ()


def test_one_dump_of_many_accuses_nobody() -> None:
    job = healthy(4)
    job.issue([0])
    answer = answer_of(job, [0])
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())


def test_a_dead_rank_without_a_dump_did_not_come() -> None:
    job = healthy(4)
    job.issue([0, 1, 3])
    known = {2: RankKnowledge(2, gone=True, signal=9)}
    answer = answer_of(job, [0, 1, 3], known=known)
    assert (answer.culprits, answer.findings[0].kind) == ((2,), "missing_ranks")
    assert "rank 2: its process is gone (SIGKILL)" in answer.findings[0].evidence


def test_a_job_that_aborted_is_judged_by_the_last_number_all_reached() -> None:
    """gloo aborts the innocent receiver of a size that does not fit; then nothing is pending any more."""
    job = healthy(4, backend="gloo")
    job.issue([1, 2], size=[[2]], done=True)
    job.issue([0], size=[[1 << 20]], done=True)
    known = {
        0: RankKnowledge(0, exception="RuntimeError: Connection closed by peer"),
        3: RankKnowledge(3, gone=True, signal=6),
    }
    answer = answer_of(job, [0, 1, 2], known=known)
    assert (answer.kind, answer.culprits) == ("size_or_syntax_mismatch", (0,))


def test_the_first_to_fall_is_named_where_nothing_is_pending() -> None:
    known = {
        rank: RankKnowledge(rank, exception="RuntimeError: Connection closed by peer") for rank in range(3)
    }
    known[3] = RankKnowledge(3, step=41, exception="ValueError: bad sample")
    answer = answer_of(healthy(), known=known)
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "missing_ranks", (3,))
    assert answer.findings[0].evidence[0] == "rank 3 at step 41: it raised ValueError: bad sample"


@pytest.mark.parametrize(
    ("known", "command"),
    [
        (RankKnowledge(2, host="node-7"), "train-ledger stacks --launcher ssh --hosts node-7"),
        (RankKnowledge(2, host=socket.gethostname()), "train-ledger stacks"),
        (RankKnowledge(2, host="x; reboot"), "train-ledger stacks --launcher ssh --hosts 'x; reboot'"),
        (RankKnowledge(2, gone=True), None),
    ],
    ids=["elsewhere", "here", "quoted", "gone"],
)
def test_the_next_command_can_be_pasted(known: RankKnowledge, command: str | None) -> None:
    job = healthy()
    job.issue([0, 1, 3])
    commands = [it.command for it in answer_of(job, known={2: known}).next]
    assert [it for it in commands if "stacks" in it] == ([] if command is None else [command])


# What holds for every job


@st.composite
def planted(draw: st.DrawFn) -> tuple[Job, int, str]:
    """A job of random groups in which one rank does one thing wrong at a random place."""
    world = draw(st.integers(3, 9))
    job = Job(world, backend=draw(st.sampled_from(["nccl", "gloo"])))
    names = ["0"]
    for index in range(draw(st.integers(0, 3))):
        ranks = draw(st.permutations(range(world)).map(lambda order: order[: max(3, world // 2)]))
        names.append(job.group(f"g{index}", ranks, f"group {index}"))
    culprit = draw(st.integers(0, world - 1))
    fault = draw(st.sampled_from(["missing", "type", "size"]))
    for name in draw(st.lists(st.sampled_from(names), max_size=12)):
        job.issue(job.groups[name][1], group=name, done=True)
    for name in names:  # so that gloo's members can be inferred
        job.issue(job.groups[name][1], group=name, done=True)
    where = draw(st.sampled_from([name for name in names if culprit in job.groups[name][1]]))
    rest = [rank for rank in job.groups[where][1] if rank != culprit]
    job.issue(rest, group=where)
    if fault == "type":
        job.issue([culprit], "broadcast", group=where)
    elif fault == "size":
        job.issue([culprit], group=where, size=[[64]])
    for name in names:  # the world goes on as far as it can
        if name != where:
            free = [rank for rank in job.groups[name][1] if rank not in job.groups[where][1]]
            job.issue(free, group=name)
    return job, culprit, fault


KINDS = {
    "missing": "missing_ranks",
    "type": "collective_type_mismatch",
    "size": "size_or_syntax_mismatch",
}


@settings(max_examples=200, deadline=None)
@given(planted())
def test_a_planted_fault_is_found_and_no_innocent_named(case: tuple[Job, int, str]) -> None:
    job, culprit, fault = case
    answer = answer_of(job)
    assert answer.culprits == (culprit,)
    assert answer.kind == KINDS[fault]


@settings(max_examples=60, deadline=None)
@given(planted(), st.randoms(use_true_random=False))
def test_the_order_of_the_dumps_does_not_matter(case: tuple[Job, int, str], random: Any) -> None:
    job, _, _ = case
    ranks = list(range(job.world))
    random.shuffle(ranks)
    assert to_json(answer_of(job, ranks)) == to_json(answer_of(job))


@settings(max_examples=60, deadline=None)
@given(planted(), st.randoms(use_true_random=False))
def test_other_numbers_for_the_ranks_give_the_same_answer_in_those_numbers(
    case: tuple[Job, int, str], random: Any
) -> None:
    job, culprit, _ = case
    to = list(range(job.world))
    random.shuffle(to)
    answer = answer_of(_renamed(job, to))
    assert answer.culprits == (to[culprit],)
    assert answer.kind == answer_of(job).kind
    assert _victims(answer) == {to[rank] for rank in _victims(answer_of(job))}


def _renamed(job: Job, to: list[int]) -> Job:
    """The same job in which rank r is called to[r]."""
    other = Job(job.world, backend=job.backend)
    other.groups = {name: (desc, [to[rank] for rank in ranks]) for name, (desc, ranks) in job.groups.items()}
    other.entries = {to[rank]: entries for rank, entries in job.entries.items()}
    return other


def _victims(answer: HangAnswer) -> set[int]:
    return {rank for ranks in answer.victims_of.values() for rank in ranks}


def test_the_calls_of_an_odd_rank_are_listed_beside_a_usual_one() -> None:
    job = healthy()
    job.issue([0, 1, 2])
    job.issue([3], "broadcast")
    commands = [it.command for it in answer_of(job).next]
    assert any(it.endswith(" --entries --ranks 0,3 --groups 0") for it in commands)


def test_a_long_list_of_ranks_is_cut_in_the_evidence() -> None:
    job = healthy(512)
    job.issue(sorted({it * it % 509 for it in range(512)}))
    lines = answer_of(job).findings[0].evidence
    assert lines[0].startswith("255 ranks 0-1,4-6,9,")
    assert max(map(len, lines)) < 300


def test_a_stride_of_ranks_is_said_in_the_evidence() -> None:
    job = healthy(512)
    job.issue(range(0, 512, 2))
    assert answer_of(job).findings[0].evidence[0].startswith("ranks 0-510 every 2nd wait in all_reduce")


def test_one_dump_of_many_rules_nothing_out() -> None:
    assert answer_of(healthy(), [2]).ruled_out == ()
