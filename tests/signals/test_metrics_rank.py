"""One rank speaks for the job: the one that has the loss."""

from __future__ import annotations

from typing import Any

import pytest

from train_ledger.signals.metrics_rank import metrics_rank


@pytest.mark.parametrize(
    ("world_size", "parallelism", "rank"),
    [
        (1, None, 0),
        (8, {"dp": 8}, 0),
        (8, {"dp": 4, "tp": 2}, 0),
        (8, {"dp": 2, "tp": 2, "pp": 2}, 4),  # stages are the slowest axis: 0–3 and 4–7
        (16, {"tp": 2, "pp": 4}, 12),  # dp is what is left
        (16, {"tp": 2, "cp": 2, "pp": 2, "dp": 2}, 8),
        (16, {"dp": 2, "tp": 2, "pp": 4, "order": ["tp", "pp", "dp"]}, 6),  # stages of a replica side by side
        (16, {"dp": 2, "tp": 2, "pp": 4, "order": ["pp", "tp", "dp"]}, 3),
        (16, {"tp": 2, "pp": 4, "ep": 2, "order": "tp-cp-ep-dp-pp"}, 12),  # as Megatron writes it
        (16, {"tp": 2, "pp": 4, "order": "tp-cp-ep-pp-dp"}, 6),
    ],
)
def test_the_first_rank_of_the_last_stage(
    world_size: int, parallelism: dict[str, Any] | None, rank: int
) -> None:
    assert metrics_rank(world_size, parallelism) == rank


def test_a_v_shaped_schedule_brings_the_loss_back_to_the_first_rank() -> None:
    assert metrics_rank(16, {"tp": 2, "pp": 4}, schedule="ZBVZeroBubble") == 0
    assert metrics_rank(16, {"tp": 2, "pp": 4}, schedule="ScheduleZBVZeroBubble") == 0
    assert metrics_rank(16, {"tp": 2, "pp": 4}, schedule="1F1B") == 12


@pytest.mark.parametrize(
    "parallelism",
    [
        {"pp": 3},
        {"pp": 0},
        {"pp": -2},
        {"pp": "2"},
        {"pp": 2, "dp": 3},
        {"pp": 2, "tp": 10**400},
        {"order": 7},
    ],
)
def test_figures_that_make_no_job_of_that_size_leave_it_to_rank_0(parallelism: dict[str, Any]) -> None:
    assert metrics_rank(8, parallelism) == 0
