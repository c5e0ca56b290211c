"""A log does not number the starts of its run; they are counted by what goes back, and by who says so."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.sources.reading.attempt_count import AttemptCount, RankStreams


def numbered(count: AttemptCount, *facts: Fact, program: str = "p") -> list[int]:
    return [count.of(it, program) for it in facts]


def steps(*numbers: int, rank: int | None = 0, t: float = math.nan) -> list[Step]:
    return [Step(t + place, number, rank) for place, number in enumerate(numbers)]


def test_each_step_that_goes_back_begins_an_attempt() -> None:
    assert numbered(AttemptCount("a"), *steps(1, 2, 3, 2, 3, 4, 1, 2)) == [0, 0, 0, 1, 1, 1, 2, 2]


def test_two_programs_that_both_go_back_begin_one_attempt() -> None:
    count = AttemptCount("a")
    told = [(step, program) for step in (1, 2, 3, 2, 3) for program in ("p", "q")]
    assert [count.of(Step(math.nan, step, None), program) for step, program in told] == [0] * 6 + [1] * 4


def test_a_line_that_comes_late_is_of_the_attempt_before() -> None:
    count = AttemptCount("a")
    assert numbered(count, Step(10.0, 5, 0), Step(9.0, 4, 0), Step(11.0, 6, 0)) == [0, 0, 0]


def test_the_same_step_again_is_a_restart_where_trouble_lies_between() -> None:
    assert numbered(AttemptCount("a"), *steps(1, 2, 2)) == [0, 0, 0]
    assert numbered(AttemptCount("a"), *steps(1, 2), Fault(None, "oom", 0), *steps(2)) == [0, 0, 0, 1]


def test_ranks_count_for_themselves() -> None:
    count = AttemptCount("a")
    assert numbered(count, *steps(5, rank=0), *steps(3, rank=1), *steps(4, rank=1), *steps(2, rank=0)) == [
        0,
        0,
        0,
        1,
    ]


def test_a_rank_that_starts_in_its_next_file_goes_on_in_the_next_attempt() -> None:
    ranks = RankStreams()
    assert numbered(AttemptCount("a", None, ranks), *steps(1, 2)) == [0, 0]
    start = Event(math.nan, "run_start", 0)
    assert numbered(AttemptCount("b", None, ranks), start, *steps(3, 4)) == [1, 1, 1]
    assert numbered(AttemptCount("c", None, ranks), *steps(5, 6)) == [1, 1]


def test_ranks_that_start_together_are_one_start() -> None:
    start = Event(math.nan, "run_start", None)
    facts = [start, *steps(1, rank=None), start, start, *steps(2, 3, 4, rank=None)]
    assert numbered(AttemptCount("a"), *facts) == [0] * 7
    assert numbered(AttemptCount("a"), *facts, start, *steps(5, rank=None)) == [0] * 7 + [1, 1]


def test_the_attempt_of_the_launchers_folder_is_where_it_begins() -> None:
    assert numbered(AttemptCount("a", 2), *steps(7, 8, 7)) == [2, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([None, 0, 1]), st.sampled_from("pq"))))
def test_attempts_of_a_program_never_go_back(told: list[tuple[int, int | None, str]]) -> None:
    count = AttemptCount("a")
    last: dict[tuple[int | None, str], tuple[int, int]] = {}
    for step, rank, program in told:
        attempt = count.of(Step(math.nan, step, rank), program)
        before_step, before = last.get((rank, program), (step, 0))
        assert attempt >= before
        assert attempt > before or step >= before_step
        last[(rank, program)] = (step, attempt)
