"""The accounts and the run's state say the same of what was productive."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from ledger.accounts.made import START_T, AttemptPlan, Made, Plan, played
from ledger.accounts.test_laws import PLANS
from train_ledger.config import Alerts, Config
from train_ledger.facts import Event, Step
from train_ledger.ledger import Fold, RunState
from train_ledger.ledger.accounts import Accounts, History, accounts_of


def both(made: Made) -> tuple[Accounts, RunState]:
    history, fold = History("made"), Fold("made", Config())
    history.add_all(made.facts)
    fold.add_all(made.facts)
    return accounts_of(history, Alerts(), made.t), fold.state(made.t)


def test_without_a_restart_they_agree_to_a_thousandth() -> None:
    plan = AttemptPlan(steps=40, evaluate_every=8, hang_at=30, end="goes_on", end_s=0)
    accounts, state = both(played(Plan((plan,), step_s=12.0)))
    assert state.productive is not None
    assert accounts.seconds["productive"] == pytest.approx(state.productive.total_s, rel=0.001)
    assert accounts.effective["24h"] == pytest.approx(state.productive.fraction, abs=0.001)
    assert accounts.effective["run"] == pytest.approx(state.productive.fraction, abs=0.001)


def test_after_a_restart_they_agree_once_the_step_once_reached_is_passed() -> None:
    before, after = AttemptPlan(steps=18), AttemptPlan(steps=20, end="goes_on")
    accounts, state = both(played(Plan((before, after), step_s=12.0)))
    assert state.productive is not None
    assert accounts.seconds["rework"] == pytest.approx(3 * 12.0, rel=0.01)
    assert accounts.seconds["productive"] == pytest.approx(state.productive.total_s, rel=0.002)


def test_before_that_the_accounts_count_less_for_the_lost_steps_are_not_held() -> None:
    before, after = AttemptPlan(steps=18), AttemptPlan(steps=1, end="goes_on")
    accounts, state = both(played(Plan((before, after), step_s=12.0)))
    assert state.productive is not None
    lost_s = state.productive.total_s - accounts.seconds["productive"]
    assert lost_s == pytest.approx(2 * 12.0, rel=0.02)


def _told_whole(attempt: AttemptPlan, *, is_last: bool) -> AttemptPlan:
    """With steps, no end in between, and all of it told by the one rank that the state follows."""
    end = "goes_on" if is_last else "crash" if attempt.end == "end" else attempt.end
    return replace(attempt, steps=max(4, attempt.steps), end=end, fall_silent=())


@settings(max_examples=100, deadline=None)
@given(PLANS)
def test_they_agree_on_any_run_that_holds_what_it_did(plan: Plan) -> None:
    *early, last = plan.attempts
    told = (*(_told_whole(it, is_last=False) for it in early), _told_whole(last, is_last=True))
    made = played(replace(plan, attempts=told))
    accounts, state = both(made)
    assume(state.state not in ("recovering", "restarting") and state.productive is not None)
    if state.productive is not None:
        tolerance_s = 0.5 + made.guessed * 0.012 * plan.step_s
        assert accounts.seconds["productive"] == pytest.approx(state.productive.total_s, abs=tolerance_s)


def test_a_stall_among_a_few_steps_makes_those_of_the_next_start_no_longer() -> None:
    before, after = AttemptPlan(steps=5, save_every=3, hang_at=5), AttemptPlan(steps=4, end="goes_on")
    accounts, state = both(played(Plan((before, after), step_s=0.5)))
    assert state.productive is not None
    assert accounts.seconds["productive"] == pytest.approx(state.productive.total_s, abs=0.1)


def test_a_step_is_credited_no_more_than_the_time_since_the_start() -> None:
    start = Event(START_T, "run_start", 0, details={"world_size": 1})
    first, second = Step(START_T + 1, 1, 0), Step(START_T + 32, 2, 0)
    _, state = both(Made([start, first, second], t=START_T + 32))
    assert state.productive is None or state.productive.total_s <= 32
    later = [Step(START_T + 32 + 31 * n, 2 + n, 0) for n in range(1, 4)]
    accounts, state = both(Made([start, first, second, *later], t=later[-1].t))
    assert state.productive is not None
    assert state.productive.total_s == pytest.approx(1 + 4 * 31)
    assert accounts.seconds["productive"] == pytest.approx(1 + 4 * 31)


@settings(max_examples=50, deadline=None)
@given(PLANS)
def test_no_more_is_productive_than_has_passed_whenever_one_looks(plan: Plan) -> None:
    made = played(plan)
    fold = Fold("made", Config())
    for fact in made.facts:
        fold.add(fact)
        state = fold.state(fact.t)
        if state.productive is not None and fact.rank == 0:
            assert state.productive.total_s <= fact.t - state.productive.since_t + 0.01
