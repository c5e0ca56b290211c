"""What logs alone say of a hang, and what they do not decide."""

from __future__ import annotations

from dataclasses import replace

import pytest

from train_ledger.hang import RankKnowledge, analyse
from train_ledger.hang.knowledge import Brought, GpuFault, TimedOut
from train_ledger.hang.verdict.rank_lines import gpu_line
from train_ledger.hang.verdict.told import told

WORLD = range(8)


def waits(rank: int, seq: int = 2891, group: str | None = "0") -> RankKnowledge:
    report = TimedOut(seq, "ALLREDUCE", group, 600.0)
    return RankKnowledge(rank, timed_out=(report,), has_log=True)


def all_but(silent: int, **how) -> dict[int, RankKnowledge]:
    return {rank: waits(rank, **how) for rank in WORLD if rank != silent}


def answer_of(known, world_size=8):
    return analyse([], known=known, world_size=world_size)


@pytest.mark.parametrize("group", ["0", None])
def test_all_watchdogs_but_one_name_the_silent_rank_with_little_confidence(group) -> None:
    answer = answer_of(all_but(7, group=group))
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "missing_ranks", (7,))
    assert (answer.confidence, answer.seq, answer.op) == ("low", 2891, "ALLREDUCE")
    assert (
        "the watchdogs of ranks 0-6 timed out at number 2891 (ALLREDUCE) after 600 s"
        in answer.findings[0].evidence[0]
    )


def test_a_rank_that_says_how_far_it_had_come_is_named_with_more() -> None:
    known = {**all_but(7), 7: RankKnowledge(7, enqueued=2890, has_log=True)}
    answer = answer_of(known)
    assert (answer.culprits, answer.confidence) == ((7,), "medium")
    assert "log of rank 7: it had issued number 2890 last, 2891 not yet" in answer.findings[0].evidence


def test_a_silent_rank_that_had_come_is_not_accused() -> None:
    answer = answer_of({**all_but(7), 7: RankKnowledge(7, enqueued=2891, has_log=True)})
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "no_mismatch", ())


def test_where_every_rank_reports_nobody_is_named() -> None:
    answer = answer_of({rank: waits(rank) for rank in WORLD})
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", "no_mismatch", ())


def test_few_that_did_not_finish_what_the_others_had_finished_are_named_with_little_confidence() -> None:
    known = {rank: waits(rank, 4410 if rank == 5 else 4411) for rank in range(8)}
    answer = answer_of(known)
    assert (answer.kind, answer.culprits, answer.confidence) == ("completion_laggard", (5,), "low")
    assert not any("none finished" in line for it in answer.findings for line in it.evidence)


def test_of_halves_that_stand_at_different_numbers_neither_is_named() -> None:
    answer = answer_of({rank: waits(rank, 4410 if rank < 4 else 4411) for rank in range(8)})
    assert (answer.kind, answer.culprits) == ("completion_laggard", ())


def test_who_timed_out_in_another_operation_at_the_same_number_came_with_that() -> None:
    known = {rank: waits(rank) for rank in range(8)}
    known[5] = replace(known[5], timed_out=(TimedOut(2891, "ALLGATHER", "0", 600.0),))
    answer = answer_of(known)
    assert (answer.kind, answer.culprits) == ("collective_type_mismatch", (5,))


def test_half_of_the_ranks_silent_names_nobody() -> None:
    answer = answer_of({rank: waits(rank) for rank in range(4)})
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())
    assert any("ranks 0-3 timed out at number 2891" in line for line in answer.not_observed)


def test_a_group_whose_members_are_not_known_names_nobody() -> None:
    assert answer_of(all_but(7, group="41")).culprits == ()


def test_numbers_of_groups_that_are_not_told_apart_name_nobody() -> None:
    known = {rank: waits(rank, seq=100 + rank % 2, group=None) for rank in range(7)}
    assert answer_of(known).culprits == ()


def brought(rank: int, op: str = "ALLREDUCE", shape: str = "[4]", dtypes: str = "Float") -> RankKnowledge:
    return RankKnowledge(
        rank,
        brought=Brought(op, 2, shape, dtypes),
        exception="RuntimeError: Detected mismatch between collectives on ranks.",
    )


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        ({"op": "ALLGATHER"}, "collective_type_mismatch"),
        ({"shape": "[5]"}, "size_or_syntax_mismatch"),
        ({"dtypes": "Double"}, "collective_dtype_mismatch"),
    ],
)
@pytest.mark.parametrize("culprit", [0, 5])
def test_detail_names_the_odd_one_by_majority(odd, kind, culprit) -> None:
    known = {rank: brought(rank, **(odd if rank == culprit else {})) for rank in WORLD}
    answer = answer_of(known)
    assert (answer.verdict, answer.kind, answer.culprits) == ("hang", kind, (culprit,))
    assert answer.confidence == "medium"


def test_a_tie_names_nobody() -> None:
    known = {0: brought(0), 1: brought(1, op="BROADCAST")}
    answer = answer_of(known, world_size=2)
    assert (answer.kind, answer.culprits) == ("collective_type_mismatch", ())
    assert "nobody is accused: no side has the majority" in answer.findings[0].evidence


def test_a_monitored_barrier_names_who_did_not_pass() -> None:
    known = {0: RankKnowledge(0, has_log=True), 2: RankKnowledge(2, missed_barrier=True)}
    answer = answer_of(known)
    assert (answer.kind, answer.culprits) == ("missing_ranks", (2,))


def test_who_fell_by_itself_goes_before_what_watchdogs_report() -> None:
    known = {**all_but(7), 3: replace(waits(3), exception="FileNotFoundError: idx.npy")}
    assert answer_of(known).culprits == (3,)


def test_why_there_is_no_dump_stands_beside_that_there_is_none() -> None:
    known = {rank: RankKnowledge(rank, no_dump="its log says that /x cannot be written") for rank in (0, 1)}
    gaps = answer_of(known, world_size=3).not_observed
    assert "dumps of ranks 0-1: its log says that /x cannot be written" in gaps


def test_no_logs_tell_nothing() -> None:
    assert told({}, WORLD) is None
    assert answer_of({}).verdict == "cannot_tell"


def test_the_xid_of_a_culprits_gpu_stands_in_the_evidence() -> None:
    fault = GpuFault(79, "fell off the bus", "page", "0000:3b:00", 1_746_493_323.0)
    known = {**all_but(7), 7: RankKnowledge(7, host="n1", gpu_faults=(fault,))}
    finding = answer_of(known).findings[0]
    assert gpu_line(known[7], fault) in finding.evidence
    assert finding.cause_suspected is not None
    assert "XID" in finding.cause_suspected


def test_what_ranks_of_gloo_raised_is_told_and_names_nobody() -> None:
    """The first to time out has the launcher end the others: who raised nothing may be late, too."""
    said = (
        "RuntimeError: [/src/gloo/tcp/unbound_buffer.cc:{}] Timed out waiting 15000ms for recv (at t.py:31)"
    )
    known = {
        rank: RankKnowledge(
            rank, gone=True, exception=said.format(70 + rank), raised_in=f"logs/{rank}.log:90"
        )
        for rank in (0, 1, 3)
    }
    known[1] = replace(known[1], failed_first=True)
    known[2] = RankKnowledge(2, gone=True, signal=15)
    answer = analyse([], known=known)
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())
    assert [line for line in answer.not_observed if line.startswith("logs")] == [
        "logs: ranks 0-1,3 raised RuntimeError: Timed out waiting 15000ms for recv (at t.py:31)",
        "logs: rank 2 raised nothing: late, or ended before",
    ]
    assert [it.command for it in answer.next] == ["sed -n '30,90p' logs/1.log"], (
        "nobody lives to be looked at"
    )
