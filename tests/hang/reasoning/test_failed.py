"""What failed over gloo is open again, although the recorder says that it is over."""

from __future__ import annotations

import pytest

from hang.recorder import Job, answer_of
from train_ledger.hang import RankKnowledge

CLOSED = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:31876"
TIMED_OUT = "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 30000ms for recv"


def raised(*ranks: int, error: str = TIMED_OUT) -> dict[int, RankKnowledge]:
    return {rank: RankKnowledge(rank, exception=error) for rank in ranks}


def given_up(world: int, came: list[int]) -> Job:
    """Three collectives of all; to the fourth some came, and it timed out."""
    job = Job(world, backend="gloo")
    for _ in range(3):
        job.issue(range(world), done=True)
    job.issue(came, done=True)
    return job


def test_who_never_came_is_named_where_all_others_gave_up() -> None:
    answer = answer_of(given_up(4, [0, 1, 3]), known=raised(0, 1, 3))
    assert (answer.verdict, answer.kind, answer.culprits, answer.seq) == ("hang", "missing_ranks", (2,), 4)
    assert answer.victims_of == {2: (0, 1, 3)}


def test_one_that_gave_up_is_enough_to_tell() -> None:
    answer = answer_of(given_up(4, [0, 1, 3]), known=raised(1))
    assert answer.culprits == (2,)


def test_without_a_word_of_the_ranks_it_cannot_be_told() -> None:
    answer = answer_of(given_up(4, [0, 1, 3]))
    assert (answer.verdict, answer.culprits) == ("cannot_tell", ())
    assert any("rank 2 did not come to it" in line for line in answer.not_observed)


def test_ranks_that_ended_at_one_number_do_not_hang() -> None:
    assert answer_of(given_up(4, [0, 1, 2, 3])).verdict == "no_hang"


def test_who_was_thrown_out_of_something_unrecorded_is_not_accused() -> None:
    """Rank 2 waited in a send, which gloo does not record, for rank 3, which is dead without a dump."""
    job = given_up(4, [0, 1])
    known = {**raised(0, 1), **raised(2, error=CLOSED), 3: RankKnowledge(3, gone=True, signal=9)}
    answer = answer_of(job, [0, 1, 2], known=known)
    assert answer.culprits == (3,)


def test_an_innocent_alone_with_a_closed_connection_leaves_nobody_to_blame() -> None:
    known = {**raised(0, 1, 3), **raised(2, error=CLOSED)}
    assert answer_of(given_up(4, [0, 1, 3]), known=known).culprits == ()


def test_ranks_that_had_no_more_to_do_are_not_accused_by_the_one_that_went_on() -> None:
    known = {**raised(0), **{rank: RankKnowledge(rank, ended=True) for rank in (1, 2, 3)}}
    assert answer_of(given_up(4, [0]), known=known).culprits == ()


def test_the_one_that_left_early_is_accused() -> None:
    known = {**raised(0, 1, 3, error=CLOSED), 2: RankKnowledge(2, ended=True)}
    assert answer_of(given_up(4, [0, 1, 3]), known=known).culprits == (2,)


@pytest.mark.parametrize("known", [raised(0, 1, 3, 4, 6, 7), raised(4), raised(0, 4)])
def test_a_chain_of_given_up_waits_leads_to_its_end(known: dict[int, RankKnowledge]) -> None:
    """Rank 5 stands; 4 gave up in tp, the rest in dp for 4 and 5."""
    job = Job(8, backend="gloo")
    for pair in range(4):
        job.group(f"tp{pair}", [2 * pair, 2 * pair + 1], "tp")
    for side in range(2):
        job.group(f"dp{side}", range(side, 8, 2), "dp")
    for name, (_desc, ranks) in list(job.groups.items()):
        job.issue(ranks, group=name, done=True)
    job.issue([4], group="tp2", done=True)
    for pair in (0, 1, 3):
        job.issue([2 * pair, 2 * pair + 1], group=f"tp{pair}", done=True)
    job.issue([0, 2, 6], group="dp0", done=True)
    job.issue([1, 3, 7], group="dp1", done=True)
    assert answer_of(job, known=known).culprits == (5,)


def test_some_gave_up_while_others_still_wait_for_them() -> None:
    """Rank 0 timed out in dp for rank 3; rank 1 still waits in tp for rank 0, which is gone."""
    job = Job(4, backend="gloo")
    job.group("tp0", [0, 1], "tp")
    job.group("tp1", [2, 3], "tp")
    job.group("dp", range(4), "dp")
    for name in ("tp0", "tp1", "dp"):
        job.issue(job.groups[name][1], group=name, done=True)
    job.issue([0], group="dp", done=True)
    job.issue([2], group="dp")
    job.issue([1], group="tp0")
    job.issue([1], group="dp")
    answer = answer_of(job, known=raised(0))
    assert answer.culprits == (3,)


def late_comer(after_s: int) -> Job:
    """Rank 2 came to the fourth collective when the others had waited for 30 s already."""
    job = given_up(4, [0, 1, 3])
    job.issue([2], done=True)
    job.entries[2][-1]["time_created_ns"] = job.entries[0][-1]["time_created_ns"] + after_s * 10**9
    return job


def test_who_came_when_the_others_had_given_up_is_named() -> None:
    known = {**raised(0, 1, 3), **raised(2, error=CLOSED)}
    answer = answer_of(late_comer(45), known=known)
    assert (answer.kind, answer.culprits, answer.seq) == ("missing_ranks", (2,), 4)
    assert "rank 2 came 45 s after them, when they had given up" in answer.findings[0].evidence


def test_who_came_in_time_is_not() -> None:
    known = {**raised(0, 1, 3), **raised(2, error=CLOSED)}
    assert answer_of(late_comer(5), known=known).culprits == ()
