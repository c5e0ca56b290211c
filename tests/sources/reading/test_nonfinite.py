"""A number that went wrong is told once, also where the loss does not show it."""

from __future__ import annotations

import math

from train_ledger.facts import Fact, Fault, Step
from train_ledger.sources.reading.nonfinite import Nonfinite


def faults(*facts: Fact) -> list[tuple[int | None, object]]:
    watch = Nonfinite()
    told = [it for fact in facts for it in watch.of(fact)]
    return [(it.step, it.details.get("field")) for it in told if isinstance(it, Fault)]


def step(number: int, **values: float) -> Step:
    return Step(1.0, number, 0, values=values)


def test_a_loss_that_stays_wrong_is_told_once_and_again_after_a_hundred_good_steps() -> None:
    bad = [step(it, loss=math.nan) for it in (5, 6, 7)]
    good = [step(it, loss=2.0) for it in range(8, 110)]
    assert faults(*bad, *good, step(110, loss=math.inf)) == [(5, "loss"), (110, "loss")]


def test_the_norm_tells_what_a_filtered_loss_hides() -> None:
    assert faults(step(1, loss=2.0, grad_norm=math.nan)) == [(1, "grad_norm")]


def test_a_step_that_the_scaler_skipped_has_an_infinite_norm_by_right() -> None:
    good, skipped = step(1, skipped=0.0, grad_norm=1.0), step(2, skipped=1.0, grad_norm=math.inf)
    assert faults(good, skipped) == []
    assert faults(good, skipped, step(3, skipped=1.0, grad_norm=math.inf)) == [(3, "grad_norm")]


def test_what_a_format_suspects_is_told_once_with_what_is_seen_here() -> None:
    suspected = Fault(None, "nan_suspected", 0, 4)
    assert faults(step(3, loss=math.nan), suspected, Fault(None, "oom", 0, 4)) == [(3, "loss"), (4, None)]


def test_an_attempt_that_counts_its_skips_anew_begins_with_one() -> None:
    before = step(9, skipped=5.0, grad_norm=1.0)
    assert faults(before, step(1, skipped=1.0, grad_norm=math.inf)) == []


def test_the_mean_of_an_evaluation_over_training_data_is_a_loss() -> None:
    assert faults(step(6, train_loss=math.nan, val_loss=2.0)) == [(6, "train_loss")]
