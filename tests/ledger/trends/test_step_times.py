"""What is kept of a rank's steps is little, and enough."""

from __future__ import annotations

import math
from collections import Counter
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.config import Alerts
from train_ledger.ledger.trends.step_times import PaceTrend, quantile_s

ALERTS = Alerts()


def trend(step_s: float, hours: float, stride: int = 1) -> PaceTrend:
    kept = PaceTrend(ALERTS)
    for number in range(1, int(hours * 3600 / step_s)):
        kept.add((number * step_s,), (stride,), (step_s,), ALERTS)
    return kept


@pytest.mark.parametrize("step_s", [0.5, 12.0, 120.0, 1000.0])
def test_days_of_steps_take_no_more_than_hours(step_s: float) -> None:
    day, days = trend(step_s, 24), trend(step_s, 96)
    assert len(days._slots) <= max(len(day._slots), days._most + 1)
    assert sum(len(lines) for lines in days._slots.values()) <= 2 * len(days._slots)


@given(st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=60))
def test_a_median_is_right_to_one_percent(durations_s: list[float]) -> None:
    classes = Counter(math.floor(100 * math.log(it)) for it in durations_s)
    low, high = sorted(durations_s)[(len(durations_s) - 1) // 2], sorted(durations_s)[len(durations_s) // 2]
    assert low * 0.989 <= quantile_s(classes, 0.5) <= high * 1.011
    if len(durations_s) % 2:
        assert quantile_s(classes, 0.5) == pytest.approx(median(durations_s), rel=0.011)


def test_lines_of_many_steps_count_for_those() -> None:
    """Six lines an hour say nothing of a hundred steps, but that each stands for twenty."""
    for stride, enough in ((1, False), (20, True)):
        kept = trend(600.0, 3, stride)
        first, last = kept.usual_edges(ALERTS)
        steps = sum(steps for slot, steps, _ in kept.up_to(last) if slot >= first)
        assert (steps >= ALERTS.step_usual_least_steps) == enough
