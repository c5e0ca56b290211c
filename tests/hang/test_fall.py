"""How sure it is that who fell is the cause."""

from __future__ import annotations

import pytest

from train_ledger.hang import RankKnowledge, first_fallen
from train_ledger.hang.fall import is_over, sure_of_fall

OWN = RankKnowledge(1, exception="IndexError: list index out of range")
LOST = "RuntimeError: Connection closed by peer"


def known_with(*others: RankKnowledge, own: RankKnowledge = OWN) -> dict[int, RankKnowledge]:
    return {it.rank: it for it in (own, *others)}


def test_one_raised_and_all_others_lost_it_or_were_ended() -> None:
    known = known_with(RankKnowledge(0, exception=LOST), RankKnowledge(2, signal=15))
    assert sure_of_fall(known, (1,), range(3)) == "high"


@pytest.mark.parametrize(
    ("known", "world"),
    [
        (known_with(RankKnowledge(0, exception=LOST)), 3),
        (known_with(RankKnowledge(0), RankKnowledge(2, exception=LOST)), 3),
        (known_with(), 1),
        (known_with(own=RankKnowledge(1, gone=True)), 3),
        (known_with(own=RankKnowledge(1, exception="TimeoutError: no answer")), 1),
        (known_with(RankKnowledge(0, exception=LOST), own=RankKnowledge(1, gone=True)), 2),
    ],
    ids=["one unheard", "one goes on", "alone", "in silence", "it waited", "in silence, and lost"],
)
def test_else_less_is_known(known: dict[int, RankKnowledge], world: int) -> None:
    assert sure_of_fall(known, (1,), range(world)) == "medium"


def test_two_that_fell_in_silence_are_a_guess_and_two_that_say_why_are_not() -> None:
    silent = {rank: RankKnowledge(rank, gone=True) for rank in (1, 2)}
    assert sure_of_fall(silent, (1, 2), range(8)) == "low"
    assert sure_of_fall(known_with(RankKnowledge(2, no_memory=True)), (1, 2), range(8)) == "medium"


def test_who_raised_as_the_job_was_ended_did_not_fall_by_itself() -> None:
    known = {
        0: RankKnowledge(0, signal=15),
        1: RankKnowledge(1, exception="OSError: x", raised_as_ended=True),
    }
    assert first_fallen(known, range(2)) == ()
    assert all(map(is_over, known.values()))
