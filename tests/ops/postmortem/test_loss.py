"""What was lost: nothing is multiplied that is not known."""

from __future__ import annotations

from typing import Any

import pytest

from train_ledger.answer import Diagnosis, Impact
from train_ledger.config import Config, Cost
from train_ledger.ledger.accounts import Accounts
from train_ledger.ops.postmortem.incident import Happened, Incident
from train_ledger.ops.postmortem.loss import Loss, loss
from train_ledger.ops.postmortem.split import Split

T = 1_800_000_000.0
OVER = Split(T, {"over": T + 3600}, {}, first_step_t=T + 1800, redone_steps=300, resumed_step=51_000)


def _loss(
    run: dict[str, Any] | None = None,
    *,
    split: Split = OVER,
    impact: Impact | None = None,
    accounts: Accounts | None = None,
    price: float | None = None,
) -> Loss:
    verdict = Happened("verdict", T + 99, {}, 1, Diagnosis("stalled", "hang.host", since_t=T, impact=impact))
    incident = Incident("i1", (verdict,), is_closed=False)
    return loss(incident, split, accounts, run or {}, Config(cost=Cost(price)))


def test_an_hour_of_1024_gpus() -> None:
    found = _loss({"world_size": 1024}, price=2.5)
    assert found.impact == Impact(3600.0, 1024.0, 2560.0)
    told = list(found.told(OVER))
    assert told[0] == "without a step: 30 min 0 s"
    assert told[1] == "done again: 300 steps from step 51,000 on, 30 min 0 s"
    assert told[2].startswith("in all: 60.0 min × 1,024 GPUs = 1,024 GPU-hours")
    assert told[3] == "cost: 2,560.00 USD"


@pytest.mark.parametrize(
    ("run", "why"), [({"world_size": 4, "device": "cpu"}, "say of no GPU"), ({}, "is not known")]
)
def test_without_gpus_only_time_is_lost(run: dict[str, Any], why: str) -> None:
    told = list(_loss(run).told(OVER))
    assert "in all: 1 h 0 min (from the last step until the step once reached was passed)" in told
    assert why in told[-1]


def test_without_a_price_nothing_is_priced() -> None:
    assert "no price known" in list(_loss({"world_size": 8}).told(OVER))[-1]


def test_the_price_of_the_verdict_counts_where_the_configuration_is_gone() -> None:
    assert _loss({}, impact=Impact(360.0, 0.8, 1.6)).impact == Impact(3600.0, 8.0, 16.0)


def test_the_accounts_know_best_how_many_there_were() -> None:
    own = Accounts("r", T, T + 9, {}, gpu_hours={"down": 1.0}, world_size=16)
    assert _loss({"world_size": 8}, accounts=own).gpus == 16


def test_what_is_not_over_counts_to_the_last_entry() -> None:
    found = _loss({"world_size": 8}, split=Split(T, {}, {}))
    assert found.impact is not None
    assert found.impact.wall_s == 99
    assert "no record says that it is back" in found.upto


def test_where_nobody_knows_since_when_nothing_is_said() -> None:
    found = _loss({"world_size": 8}, split=Split(None, {}, {}))
    assert list(found.told(Split(None, {}, {}))) == [
        "in all: not known, since no record says when the run stood still"
    ]


def _went_on(*states: tuple[float, str, str]) -> Incident:
    """A stall at T, and the states that followed: when, before and then."""
    moved = tuple(
        Happened("state_changed", T + after_s, {"before": before, "state": state}, number)
        for number, (after_s, before, state) in enumerate(states, start=1)
    )
    return Incident("i1", moved, is_closed=True)


def test_a_run_whose_steps_came_again_by_themselves_lost_the_time_until_then() -> None:
    incident = _went_on((9, "running", "stalled"), (99, "stalled", "running"), (400, "running", "finished"))
    found = loss(incident, Split(T, {}, {}), None, {}, Config())
    said = "in all: 1 min 39 s (until steps came again by themselves, none of them lost)"
    assert said in found.told(Split(T, {}, {}))


@pytest.mark.parametrize(
    "states",
    [
        ((9.0, "running", "stalled"),),
        ((9.0, "running", "stalled"), (60.0, "stalled", "restarting"), (99.0, "restarting", "running")),
        ((9.0, "running", "stopped"), (99.0, "stopped", "running")),
    ],
)
def test_after_a_restart_or_none_at_all_steps_did_not_come_by_themselves(
    states: tuple[tuple[float, str, str], ...],
) -> None:
    assert _went_on(*states).went_on_t(T) is None
