"""Whether a run came back from a restart as it was before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.config import Config
from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger import Fold
from train_ledger.ledger.memo import from_plain, put_down, take_up, to_plain
from train_ledger.ledger.recovery import LapLosses
from train_ledger.ledger.state import Recovered

T0 = 1_764_000_000.0


def falling(step: int) -> float:
    """The loss of a run: it falls, and changes from step to step by three hundredths."""
    return 2.0 + 10.0 / (step + 10) + (0.03 if step % 2 else 0.0)


def attempt(
    number: int,
    first: int,
    last: int,
    t: float,
    loss: Callable[[int], float] | None = falling,
    batch: int = 8,
) -> list[Fact]:
    start: list[Fact] = [Event(t - 5.0, "run_start", 0, attempt=number, host="n1", details={"world_size": 1})]
    for step in range(first, last + 1):
        told = {} if loss is None else {"loss": loss(step)}
        told |= {"consumed_samples": float(step * batch)} if batch else {}
        start.append(Step(t + step - first, step, 0, number, "n1", values=told))
    return start


def recovered(*attempts: list[Fact]) -> Recovered | None:
    fold = Fold("r42", Config())
    for facts in attempts:
        fold.add_all(facts)
    return fold.state(attempts[-1][-1].t or T0).recovery


def over(*attempts: list[Fact]) -> Recovered:
    found = recovered(*attempts)
    assert found is not None
    assert found.is_over
    return found


BEFORE = attempt(0, 1, 150, T0)


def test_a_run_that_never_began_again_has_nothing_to_recover_from() -> None:
    assert recovered(BEFORE) is None


def test_it_is_over_when_the_step_once_reached_is_passed() -> None:
    on_its_way = recovered(BEFORE, attempt(1, 101, 150, T0 + 300))
    assert on_its_way == Recovered(1, 0, resumed_step=101, reached=150, redone_steps=50)
    assert over(BEFORE, attempt(1, 101, 151, T0 + 300)).redone_steps == 50


def test_the_same_loss_and_data_join_on() -> None:
    found = over(BEFORE, attempt(1, 101, 160, T0 + 300, lambda step: falling(step) * 1.0005))
    assert found.loss_joins_on
    assert found.data_agrees
    assert found.loss_compared == 50
    assert found.loss_difference == pytest.approx(0.001, rel=0.1)
    assert found.not_observed == ()


def test_an_optimiser_that_was_not_loaded_does_not() -> None:
    found = over(BEFORE, attempt(1, 101, 160, T0 + 300, lambda step: falling(step) + 0.2))
    assert found.loss_joins_on is False
    assert found.data_agrees
    assert found.loss_tolerance == pytest.approx(0.06, rel=0.1)


def test_other_data_at_the_same_step_changes_the_loss_by_no_more_than_a_step_does() -> None:
    found = over(BEFORE, attempt(1, 101, 160, T0 + 300, lambda step: falling(step + 1), batch=9))
    assert found.loss_joins_on
    assert found.data_agrees is False


def test_a_loss_that_is_not_finite_joins_on_to_nothing() -> None:
    found = over(BEFORE, attempt(1, 101, 160, T0 + 300, lambda step: math.nan))
    assert found.loss_joins_on is False
    assert found.loss_difference is None


def test_a_fault_of_before_is_not_what_it_has_to_join_on_to() -> None:
    bad = attempt(0, 1, 150, T0, lambda step: falling(step) if step < 140 else math.nan)
    found = over(bad, attempt(1, 101, 160, T0 + 300))
    assert found.loss_joins_on
    assert found.loss_compared == 39


def test_logs_without_loss_and_position_are_not_observed() -> None:
    found = over(attempt(0, 1, 150, T0, None, 0), attempt(1, 101, 160, T0 + 300, None, 0))
    assert (found.loss_joins_on, found.data_agrees) == (None, None)
    assert found.redone_steps == 50
    assert [line.split(":")[0] for line in found.not_observed] == ["loss", "data"]


def test_where_no_step_was_lost_nothing_can_be_compared() -> None:
    found = over(BEFORE, attempt(1, 151, 160, T0 + 300))
    assert found.redone_steps == 0
    assert found.loss_joins_on is None
    assert found.data_agrees


def test_what_several_attempts_did_is_held_against_the_newest_that_did_it() -> None:
    twice = over(BEFORE, attempt(1, 101, 120, T0 + 300), attempt(2, 101, 160, T0 + 400))
    assert (twice.attempt, twice.reached, twice.redone_steps) == (2, 150, 50)
    assert twice.loss_joins_on


def test_steps_that_go_back_within_an_attempt_are_a_recovery_too() -> None:
    back: list[Fact] = [
        Step(T0 + 300 + step, step, 0, 0, "n1", values={"loss": falling(step)}) for step in range(91, 160)
    ]
    found = over(BEFORE, back)
    assert (found.attempt, found.lap, found.redone_steps) == (0, 1, 60)
    assert found.loss_joins_on


def test_a_log_of_every_tenth_step_counts_all_of_them() -> None:
    lines = [it for it in BEFORE if not isinstance(it, Step) or it.step % 10 == 0]
    again = [it for it in attempt(1, 101, 170, T0 + 300) if not isinstance(it, Step) or it.step % 10 == 0]
    found = over(lines, again)
    assert (found.resumed_step, found.redone_steps, found.loss_compared) == (110, 50, 5)


def test_it_is_known_after_any_number_of_steps_and_in_another_process() -> None:
    long = attempt(0, 1, 5000, T0)
    again = attempt(1, 3501, 9000, T0 + 6000)
    found = over(long, again)
    assert found.redone_steps == 1500
    assert found.loss_joins_on
    fold = Fold("r42", Config())
    fold.add_all([*long, *again[:2000]])
    taken_up = Fold("r42", Config())
    take_up(taken_up, from_plain(to_plain(put_down(fold))))
    taken_up.add_all(again[2000:])
    assert taken_up.state(again[-1].t or T0).recovery == found


@given(cuts=st.lists(st.integers(1, 1500), max_size=5), told=st.lists(st.booleans(), min_size=1, max_size=7))
def test_steps_at_once_are_kept_as_one_by_one(cuts: list[int], told: list[bool]) -> None:
    steps = [
        _Line(step, falling(step) if told[step % len(told)] else None) for step in range(1, sum(cuts) + 1)
    ]
    one_by_one, at_once = LapLosses(), LapLosses()
    for step in steps:
        one_by_one.add(step.step, step.loss)
    place = 0
    for cut in cuts:
        some = steps[place : place + cut]
        at_once.add_all(some, [it.step for it in some])  # type: ignore[arg-type]
        place += cut
    assert to_plain(at_once) == to_plain(one_by_one)


class _Line(NamedTuple):
    step: int
    loss: float | None
