"""What holds for the accounts of any run: every microsecond in one category, and in the right one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.accounts.made import AttemptPlan, Made, Plan, played
from train_ledger.config import Alerts
from train_ledger.ledger.accounts import CATEGORIES, Accounts, History, accounts_of

_OFTEN = st.sampled_from((0, 3, 5, 8))
_SOME_RANKS = st.lists(st.integers(0, 5), max_size=2).map(tuple)


def attempts(*, is_last: bool) -> st.SearchStrategy[AttemptPlan]:
    ends = ("crash", "hang", "silent", "end", "goes_on") if is_last else ("crash", "hang", "silent", "end")
    return st.builds(
        AttemptPlan,
        world_size=st.integers(1, 6),
        start_up_s=st.sampled_from((8.0, 45.0, 300.0)),
        steps=st.integers(0, 24),
        save=st.sampled_from(("sync", "async", "fails")),
        save_every=_OFTEN,
        save_s=st.sampled_from((1.0, 6.0, 40.0)),
        evaluate_every=_OFTEN,
        evaluate_s=st.sampled_from((2.0, 70.0, 400.0)),
        hang_at=st.integers(0, 30),
        hang_s=st.sampled_from((200.0, 1900.0)),
        end=st.sampled_from(ends),
        end_s=st.sampled_from((150.0, 1200.0)),
        gap_s=st.sampled_from((7.0, 200.0, 3600.0)),
        missing=_SOME_RANKS,
        fall_silent=_SOME_RANKS,
    )


def _knowable(plan: Plan) -> Plan:
    """Without wrong clocks where nobody's steps tell how wrong they are."""
    is_told = all(it.steps and {0, 1} & ({*range(it.world_size)} - {*it.missing}) for it in plan.attempts)
    return plan if is_told else replace(plan, skews_s=(plan.skews_s[0],) * 3)


PLANS = st.builds(
    lambda early, last, step_s, skews_s: _knowable(Plan((*early, last), step_s, skews_s)),
    st.lists(attempts(is_last=False), max_size=3),
    attempts(is_last=True),
    st.sampled_from((0.5, 4.0, 40.0)),
    st.tuples(*[st.sampled_from((0.0, 0.2, 611.0, -1200.0))] * 3),
)


def accounts(made: Made) -> Accounts:
    history = History("made")
    history.add_all(made.facts)
    return accounts_of(history, Alerts(), made.t)


def check(plan: Plan) -> None:
    made = played(plan)
    found = accounts(made)
    assert found.wall_s == round(math.fsum(found.seconds.values()), 6)
    assert found.wall_s == pytest.approx(made.t - made.began_t, abs=0.5)
    assert_no_gaps(found)
    tolerance_s = 0.5 + made.guessed * (0.05 + 0.01 * plan.step_s)
    off = {it: found.seconds[it] - made.truth[it] for it in CATEGORIES}
    assert {it: s for it, s in off.items() if abs(s) > tolerance_s} == {}
    assert found.gpu_hours is not None
    assert math.fsum(found.gpu_hours.values()) * 3600 == pytest.approx(made.gpu_s, rel=1e-3, abs=20)


def assert_no_gaps(found: Accounts) -> None:
    at_t = found.since_t
    for span in found.spans:
        assert span.since_t == at_t
        assert span.until_t > span.since_t
        at_t = span.until_t
    assert at_t == found.until_t


@settings(max_examples=80, deadline=None)
@given(PLANS)
def test_every_second_of_a_made_run_is_what_it_was(plan: Plan) -> None:
    check(plan)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS)
def test_a_thousand_made_runs(plan: Plan) -> None:
    check(plan)
