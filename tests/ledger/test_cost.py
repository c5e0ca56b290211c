"""The seed article's own figures."""

from __future__ import annotations

from typing import Any

import pytest

from train_ledger.answer import Impact
from train_ledger.ledger import RankState, gpu_price_per_hour, has_gpus, impact


def test_half_an_hour_of_1024_gpus() -> None:
    assert impact(1800, 1024, 2.5) == Impact(wall_s=1800, gpu_hours=512.0, cost=1280.0)


def test_four_minutes_of_1024_gpus() -> None:
    assert impact(240, 1024).gpu_hours == pytest.approx(68, abs=0.3)


def test_no_price_no_cost() -> None:
    assert impact(60, 8).cost is None


def test_ranks_without_a_gpu_cost_time_alone() -> None:
    assert impact(60, None, 2.5) == Impact(wall_s=60, gpu_hours=None, cost=None)


@pytest.mark.parametrize(
    ("run", "ranks", "expected"),
    [
        ({}, [RankState(0, pid=7), RankState(1, pid=8)], False),
        ({"device": "cpu"}, [RankState(0, pid=7, gpu=0)], False),
        ({"device": "MI300X"}, [RankState(0, pid=7)], True),
        ({"gpu_price_per_hour": 2.0}, [RankState(0, pid=7)], True),
        ({}, [RankState(0, pid=7), RankState(1, pid=8, gpu=1)], True),
        ({}, [RankState(0, pid=7, values={"mem_allocated_peak": 1e9})], True),
        ({}, [RankState(0)], True),
        ({}, [], True),
    ],
    ids=["none says of one", "by its name", "of another maker", "it has a price", "one has", "by its memory",
         "logs do not say", "nobody was heard"],
)  # fmt: skip
def test_what_says_that_ranks_have_gpus(run: dict[str, Any], ranks: list[RankState], expected: bool) -> None:
    assert has_gpus(run, ranks) is expected


def test_the_runs_own_price_goes_before_the_configured_one() -> None:
    assert gpu_price_per_hour({"gpu_price_per_hour": 2}, 3.0) == 2.0
    assert gpu_price_per_hour({}, 3.0) == 3.0
    assert gpu_price_per_hour({"gpu_price_per_hour": "cheap"}, None) is None
