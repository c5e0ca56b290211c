"""The seed article's own figures."""

from __future__ import annotations

import pytest

from train_ledger.answer import Impact
from train_ledger.ledger import gpu_price_per_hour, impact


def test_half_an_hour_of_1024_gpus() -> None:
    assert impact(1800, 1024, 2.5) == Impact(wall_s=1800, gpu_hours=512.0, cost=1280.0)


def test_four_minutes_of_1024_gpus() -> None:
    assert impact(240, 1024).gpu_hours == pytest.approx(68, abs=0.3)


def test_no_price_no_cost() -> None:
    assert impact(60, 8).cost is None


def test_the_runs_own_price_goes_before_the_configured_one() -> None:
    assert gpu_price_per_hour({"gpu_price_per_hour": 2}, 3.0) == 2.0
    assert gpu_price_per_hour({}, 3.0) == 3.0
    assert gpu_price_per_hour({"gpu_price_per_hour": "cheap"}, None) is None
