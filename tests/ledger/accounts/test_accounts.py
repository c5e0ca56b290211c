"""Single runs, each with one thing in it that is easily got wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ledger.accounts.made import AttemptPlan, Made, Plan, played
from ledger.accounts.test_laws import accounts
from train_ledger.config import Alerts
from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger.accounts import Accounts, History, Price, Sign, accounts_of

T0 = 1_790_000_000.0
CALM = AttemptPlan(end="goes_on", save_every=0)


def of(*attempts: AttemptPlan, step_s: float = 4.0) -> Accounts:
    return accounts(played(Plan(attempts, step_s)))


def without(made: Made, *, rank: int) -> list[Fact]:
    return [fact for fact in made.facts if fact.rank != rank]


def test_fewer_ranks_after_a_restart_are_fewer_gpu_hours() -> None:
    large = AttemptPlan(world_size=6, steps=10, gap_s=300)
    found = of(large, replace(CALM, world_size=2))
    assert found.gpu_hours is not None
    assert found.gpu_hours["down"] == pytest.approx((2 + 300) * 6 / 3600, rel=0.01)  # held until it came back
    assert found.world_size == 2
    assert {span.world_size for span in found.spans if span.attempt == 1} == {2}


def test_a_price_makes_a_cost_of_all_gpu_hours() -> None:
    history = History("r")
    made = played(Plan((CALM,), 4.0))
    history.add_all(made.facts)
    found = accounts_of(history, Alerts(), made.t, price=Price(3.0, "EUR"))
    assert found.gpu_hours is not None
    assert found.cost == pytest.approx(math.fsum(found.gpu_hours.values()) * 3.0)
    assert found.currency == "EUR"


def test_a_failed_save_covers_nothing() -> None:
    found = of(AttemptPlan(steps=10, save="fails", end="crash"), replace(CALM, steps=12))
    assert found.seconds["rework"] == pytest.approx(10 * 4.0, rel=0.02)
    assert (found.checkpointing.saves, found.checkpointing.failed) == (0, 2)


def test_a_save_beside_the_training_costs_only_what_it_blocks() -> None:
    found = of(replace(CALM, steps=20, save="async", save_every=5, save_s=6.0))
    assert found.seconds["checkpoint"] == pytest.approx(4 * 0.3, abs=0.1)
    assert found.checkpointing.blocking_s == pytest.approx(0.3)


def test_a_save_that_was_not_durable_when_the_run_died_covers_nothing() -> None:
    late = AttemptPlan(steps=10, save="async", save_every=10, save_s=1000.0, end="crash")
    found = of(late, replace(CALM, steps=12))
    assert found.seconds["rework"] == pytest.approx(10 * 4.0, rel=0.02)


def test_what_no_checkpoint_covers_is_lost_once_the_processes_are_gone() -> None:
    found = of(AttemptPlan(steps=18, save_every=5))
    assert found.seconds["rework"] == pytest.approx(3 * 4.0, rel=0.02)
    assert found.steps == 15


def test_while_processes_live_the_run_holds_its_steps() -> None:
    assert of(replace(CALM, steps=18, save_every=5)).steps == 18


def test_a_hang_that_ends_by_itself_is_no_interruption() -> None:
    found = of(replace(CALM, steps=20, hang_at=10, hang_s=900))
    assert found.seconds["stalled"] == pytest.approx(900, abs=1)
    assert found.interruptions == ()


def test_an_evaluation_is_one_up_to_its_limit_and_then_a_stall() -> None:
    found = of(replace(CALM, steps=20, evaluate_every=12, evaluate_s=3 * 3600.0))
    assert found.seconds["evaluation"] == 0
    assert found.seconds["stalled"] == pytest.approx(3 * 3600, abs=1)


def test_a_silence_of_which_nobody_says_what_it_was_is_unknown() -> None:
    found = of(AttemptPlan(steps=10, save_every=0, end="silent", gap_s=1500), CALM)
    assert found.seconds["unknown"] == pytest.approx(1502, abs=1)
    assert found.seconds["down"] + found.seconds["stalled"] == pytest.approx(0, abs=0.01)


def test_the_keeper_can_say_that_ranks_still_answered() -> None:
    made = played(Plan((AttemptPlan(steps=10, save_every=0, end="silent", gap_s=1500), CALM), 4.0))
    history = History("r")
    history.add_all(made.facts)
    stopped = accounts_of(history, Alerts(), made.t).interruptions[0].t
    answered = Sign(round((stopped + 1000) * 1e6), "alive")
    gone = Sign(round((stopped + 1100) * 1e6), "gone", "TrainingProcessGone")
    found = accounts_of(history, Alerts(), made.t, signs=[answered, gone])
    assert found.seconds["stalled"] == pytest.approx(1000, abs=1)
    assert found.seconds["down"] == pytest.approx(500, abs=1)
    assert found.interruptions[0].cause == "TrainingProcessGone"


def test_one_rank_that_ends_early_does_not_end_the_run() -> None:
    made = played(Plan((replace(CALM, steps=20),), 4.0))
    early = Event(made.t - 1, "run_end", 3, attempt=0, host="host1")
    history = History("r")
    history.add_all([*made.facts, early])
    found = accounts_of(history, Alerts(), made.t + 600)
    assert found.seconds["stalled"] == pytest.approx(602, abs=1)


def test_without_rank_0_another_one_tells_the_steps() -> None:
    made = played(Plan((AttemptPlan(steps=18), replace(CALM, steps=20)), 4.0))
    whole, part = History("r"), History("r")
    whole.add_all(made.facts)
    part.add_all(without(made, rank=0))
    a, b = (accounts_of(it, Alerts(), made.t) for it in (whole, part))
    assert b.seconds == pytest.approx(dict(a.seconds), abs=0.05)


def test_the_last_step_is_one_that_half_of_the_ranks_completed() -> None:
    made = played(Plan((replace(CALM, steps=20, world_size=4),), 4.0))
    ahead = Step(made.t + 2, 21, 0, 0, "host0", values={"step_time_s": 4.0})
    history = History("r")
    history.add_all([*made.facts, ahead])
    found = accounts_of(history, Alerts(), made.t + 600)
    assert max(span.last_step or 0 for span in found.spans) == 20


def test_failed_restarts_are_one_interruption_with_one_recovery() -> None:
    dead = AttemptPlan(steps=0, start_up_s=20, gap_s=30)
    found = of(AttemptPlan(steps=18), dead, dead, replace(CALM, steps=20))
    assert len(found.interruptions) == 1
    (recovery,) = found.recoveries
    assert (recovery.attempt, recovery.redone_steps) == (3, 3)


def test_the_time_between_interruptions_is_what_was_of_use_over_their_number() -> None:
    found = of(AttemptPlan(steps=18), AttemptPlan(steps=18), replace(CALM, steps=18))
    useful_s = sum(found.seconds[it] for it in ("productive", "checkpoint", "evaluation"))
    assert len(found.interruptions) == 2
    assert found.mtbi_s == useful_s / 2


def test_time_after_the_end_until_it_was_taken_up_again_is_in_no_window() -> None:
    found = of(AttemptPlan(steps=20, save_every=0, end="end", gap_s=3600), replace(CALM, steps=20))
    assert found.seconds["down"] == pytest.approx(3600, abs=1)
    assert found.effective["run"] == pytest.approx(160 / 222, abs=0.01)
    assert found.gpu_hours is not None
    assert found.gpu_hours["down"] == pytest.approx(0, abs=0.001)
    assert found.interruptions == ()


def test_a_finished_run_is_accounted_for_up_to_its_end() -> None:
    made = played(Plan((AttemptPlan(steps=20, end="end"),), 4.0))
    history = History("r")
    history.add_all(made.facts)
    assert accounts_of(history, Alerts(), made.t + 9e6).wall_s == pytest.approx(
        made.t - made.began_t, abs=0.1
    )


def test_mfu_over_a_hundred_is_no_figure() -> None:
    facts = [Step(T0 + step, step, 0, values={"mfu": 40.0 if step % 2 else 563.0}) for step in range(1, 11)]
    history = History("r")
    history.add_all(facts)
    assert accounts_of(history, Alerts(), T0 + 11).mfu == pytest.approx(40.0)


@pytest.mark.parametrize("cut_s", [0.0, 3.5, 77.7, 1e9])
def test_since_cuts_and_the_sum_still_holds(cut_s: float) -> None:
    made = played(Plan((AttemptPlan(steps=18), replace(CALM, steps=20)), 4.0))
    history = History("r")
    history.add_all(made.facts)
    found = accounts_of(history, Alerts(), made.t, since_t=made.began_t + cut_s)
    assert found.wall_s == round(math.fsum(found.seconds.values()), 6)
    assert found.wall_s == pytest.approx(max(0.0, made.t - made.began_t - cut_s), abs=1e-5)
