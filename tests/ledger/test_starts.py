"""One odd line does not make a hanging run a restarting one; a start does, and so do most of the ranks."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from train_ledger.config import Config
from train_ledger.dash import RULES
from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger import Fold, RunState

RANKS = range(4)
STEPS = [Step(10.0 * step, step, rank) for step in range(1, 31) for rank in RANKS]
T = 300.0


def state(*more: Fact, t: float = T + 600, first: Iterable[Fact] = STEPS) -> RunState:
    fold = Fold("r42", Config())
    fold.add_all([*first, *more])
    return fold.state(t)


def firing(run: RunState) -> set[str]:
    return {rule.name for rule in RULES if rule.check(run, Config().alerts)}


@pytest.mark.parametrize("attempt", [1, 7, 100_000])
@pytest.mark.parametrize("rank", [0, 2])
def test_a_stray_line_of_a_higher_attempt_hides_no_hang(attempt: int, rank: int) -> None:
    stray = Event(T + 5, "warning", rank, attempt=attempt)
    hung = state()
    seen = state(stray)
    assert (seen.state, seen.attempt, seen.ranks) == ("stalled", 0, hung.ranks)
    assert firing(seen) == {"TrainingStepStalled"}


def test_a_stray_step_hides_none_either_and_its_rank_goes_on() -> None:
    later = [Step(T + 10, 31, rank) for rank in RANKS]
    seen = state(Step(T + 5, 400, 2, attempt=7), *later, t=T + 20)
    assert (seen.state, seen.attempt, seen.ranks[2].step) == ("running", 0, 31)


def test_nor_in_a_run_of_one_rank() -> None:
    alone = [fact for fact in STEPS if fact.rank == 0]
    assert state(Event(T + 5, "warning", 0, attempt=1), first=alone).state == "stalled"


def test_the_start_of_one_rank_begins_an_attempt() -> None:
    seen = state(Event(T + 5, "run_start", 2, attempt=1), t=T + 120)
    assert (seen.state, seen.attempt, set(seen.ranks)) == ("restarting", 1, {2})


def test_where_nobody_says_run_start_most_ranks_begin_it() -> None:
    again = [Step(T + 60, 25, rank, attempt=1) for rank in RANKS]
    assert state(*again[:2], t=T + 65).attempt == 0
    seen = state(*again[:3], t=T + 65)
    assert (seen.state, seen.attempt, set(seen.ranks)) == ("recovering", 1, {0, 1, 2})


def test_and_so_does_one_rank_that_goes_on_by_itself() -> None:
    """Of eight ranks three may go on, and a writer may say no run_start: many steps are no stray line."""
    again = [Step(T + 60 + step, step, 1, attempt=1) for step in range(25, 45)]
    assert state(*again[:-1], t=T + 90).attempt == 0
    seen = state(*again, t=T + 90)
    assert (seen.attempt, seen.ranks[1].step) == (1, 44)


def test_what_waited_is_folded_in_the_order_in_which_it_was_written() -> None:
    early = Event(T + 5, "phase_start", 2, attempt=1, details={"phase": "compile"})
    start = Event(T + 6, "run_start", 2, attempt=1, details={"pid": 7})
    seen = state(early, start, t=T + 60)
    assert (seen.ranks[2].pid, seen.ranks[2].phase) == (7, "compile")
    assert seen.attempts[-1].started_t == T + 5


def test_looking_in_between_changes_nothing() -> None:
    facts = [*STEPS, *(Step(T + 60 + n, 25 + n, rank, attempt=1) for n in range(3) for rank in RANKS)]
    fold = Fold("r42", Config(), {"world_size": 4})
    for fact in facts:
        fold.add(fact)
        fold.state(T + 70)
    whole = Fold("r42", Config(), {"world_size": 4})
    whole.add_all(facts)
    assert fold.state(T + 70) == whole.state(T + 70)


def test_a_number_that_is_wrong_makes_no_thousands_of_restarts() -> None:
    seen = state(Event(T + 5, "run_start", 2, attempt=99_999), t=T + 20)
    (loop,) = (
        found for rule in RULES if (found := rule.check(seen, Config().alerts)) and rule.level == "page"
    )
    assert loop[0].summary.startswith("r42: 10 restarts within 30 min")


@pytest.mark.parametrize("world_size", [10**9, -1, True, "8", 0])
def test_a_world_that_no_job_has_is_ignored(world_size: object) -> None:
    fold = Fold("r42", Config(), {"world_size": world_size})
    fold.add_all([Event(1.0, "run_start", 0, details={"world_size": world_size}), *STEPS])
    assert fold.state(T).world_size is None
