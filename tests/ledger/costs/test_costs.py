"""What it costs: the seed article's own figures, and those of a run."""

from __future__ import annotations

import dataclasses

import pytest

from train_ledger.answer import to_json
from train_ledger.ledger import impact
from train_ledger.ledger.costs import Figure, costs, given

from .made import ACCOUNTS

SEED = costs()


def test_1024_gpus_at_2_5_dollars() -> None:
    assert SEED.rates["gpu_hour"] == 2.5
    assert SEED.rates["hour"] == 2560
    assert SEED.rates["day"] == pytest.approx(61_000, rel=0.01)
    assert SEED.rates["month"] == pytest.approx(1.84e6, rel=0.01)


def test_one_point_of_mfu() -> None:
    assert SEED.mfu_point.share == pytest.approx(0.024, abs=0.0005)
    assert SEED.mfu_point.saved_s / 86_400 == pytest.approx(0.71, abs=0.005)
    assert SEED.mfu_point.cost == pytest.approx(44_000, rel=0.01)


def test_half_an_hour_a_hang() -> None:
    assert impact(1800, 1024, 2.5).gpu_hours == 512
    assert impact(1800, 1024, 2.5).cost == 1280
    assert SEED.hang.saved_s == pytest.approx(1800, rel=0.03)
    assert SEED.hang.saved_cost_a_month == pytest.approx(300_000, rel=0.01)


def test_four_minutes_less_to_do_again() -> None:
    assert impact(240, 1024).gpu_hours == pytest.approx(68, abs=0.5)
    assert SEED.saving is not None
    assert SEED.saving.redo_saved_s == pytest.approx(240, abs=15)
    assert SEED.saving.gpu_hours_per_day == pytest.approx(550, rel=0.07)
    assert SEED.saving.cost_per_day == pytest.approx(1400, rel=0.08)


def test_more_saves_are_paid_for() -> None:
    assert SEED.saving is not None
    assert SEED.saving.more_saves_per_day == pytest.approx(26, abs=1)
    assert 0 < SEED.saving.net_cost_per_day < SEED.saving.cost_per_day / 2


def test_the_figures_of_a_run_go_before_the_defaults_and_what_is_given_before_those() -> None:
    found = costs(ACCOUNTS, configured={"mfu": Figure(50, "configured")}, given=given("price=3"))
    origins = {name: (it.value, it.origin) for name, it in found.figures.items()}
    assert origins["world_size"] == (512, "measured")
    assert origins["mfu"] == (40, "measured")
    assert origins["price"] == (3, "given")
    assert origins["restart"] == (390, "measured")
    assert origins["load"] == (420, "measured")
    assert origins["decide"] == (540, "assumed")


def test_what_the_run_has_cost_so_far() -> None:
    run = costs(ACCOUNTS).run
    assert run is not None
    assert run.cost == pytest.approx(86_400 / 3600 * 512 * 2.0)
    assert run.wasted_cost == pytest.approx(6_400 / 3600 * 512 * 2.0)


def test_no_bill_without_a_price_and_none_without_gpus() -> None:
    assert costs(dataclasses.replace(ACCOUNTS, price_per_gpu_hour=None)).run.cost is None  # type: ignore[union-attr]
    found = costs(dataclasses.replace(ACCOUNTS, gpu_hours=None))
    assert found.run is not None
    assert found.run.cost is None
    assert any("GPU" in line for line in found.not_observed)


def test_how_the_runs_own_hangs_went_is_told_beside_what_they_could_be() -> None:
    hang = costs(ACCOUNTS).hang
    assert hang.in_run == {
        "detect": 400,
        "dump": 75,
        "decide": 1500,
        "restart": 390,
        "load": 420,
        "redo": 810,
    }
    assert hang.with_alert["detect"] == 100
    assert hang.without["restart"] == 390


def test_a_save_that_costs_nothing_needs_no_interval() -> None:
    assert costs(given=given("checkpoint=0")).saving is None


def test_it_can_be_written_for_a_script() -> None:
    told = to_json(costs(ACCOUNTS))
    assert told["figures"]["mtbi"] == {"value": 27_600.0, "origin": "measured", "by": "3 interruptions"}
    assert set(told["priorities"][0]) >= {"measure", "saved_s", "gpu_hours", "cost"}


def test_a_run_that_fails_sooner_than_it_recovers_is_not_scaled_to_a_month() -> None:
    found = costs(dataclasses.replace(ACCOUNTS, mtbi_s=2.0))
    assert found.hang.saved_cost_a_month is None
    assert found.saving is None


def test_a_mean_of_three_interruptions_is_told_to_be_a_rough_one() -> None:
    assert any("M rests on 3 interruptions" in line for line in costs(ACCOUNTS).not_observed)
