"""What several interruptions of one incident cost together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.ledger.accounts import Interruption, Recovery
from train_ledger.ops.postmortem.several import redoing_s, standing_s


def interrupted(t: float, first_step_t: float | None, over_t: float | None) -> Recovery:
    return Recovery(Interruption(t, 0, 7), 1, t, first_step_t=first_step_t, over_t=over_t)


def test_each_stands_and_does_again_by_itself() -> None:
    both = [interrupted(0, 30, 40), interrupted(100, 160, 190)]
    assert (standing_s(both), redoing_s(both)) == (90, 40)


def test_an_attempt_without_a_step_stands_until_the_next_one_and_no_second_counts_twice() -> None:
    loop = [interrupted(0, None, None), interrupted(0, None, None), interrupted(0, 70, 90)]
    assert (standing_s(loop), redoing_s(loop)) == (70, 20)


def test_one_that_is_interrupted_before_it_is_back_does_again_until_then() -> None:
    loop = [interrupted(0, 10, None), interrupted(25, 40, 60)]
    assert (standing_s(loop), redoing_s(loop)) == (25, 35)


def test_a_run_that_is_not_back_has_no_length_yet() -> None:
    assert standing_s([interrupted(0, 10, 20), interrupted(30, None, None)]) is None
    assert redoing_s([interrupted(0, 10, 20), interrupted(30, 40, None)]) is None


@given(st.lists(st.tuples(*[st.floats(0, 1e4)] * 3), min_size=2, max_size=6))
def test_together_never_more_than_from_the_first_to_the_last(gaps: list[tuple[float, float, float]]) -> None:
    t, own = 0.0, []
    for down_s, redo_s, rest_s in gaps:
        own.append(interrupted(t, t + down_s, t + down_s + redo_s))
        t += down_s + redo_s + rest_s
    whole_s = (standing_s(own) or 0.0) + (redoing_s(own) or 0.0)
    assert whole_s <= (own[-1].over_t or 0.0) + 1e-6
