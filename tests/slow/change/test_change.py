"""A change is found at its step, in its shape, and where there is none none is found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.chaos.slow_fleet import SlowPlan, simulate
from train_ledger.run_dir import RunDir
from train_ledger.slow.change import change, changes_of, since_when
from train_ledger.slow.change.rank_test import rank_test
from train_ledger.slow.table import read_table
from train_ledger.slow.table.step_table import Floats

STEPS = np.arange(1000, 1400)


def noisy(seed: int, level: Floats) -> Floats:
    """Step times around a level, with tails as of Student's t with 3 degrees."""
    return level * (1 + 0.01 * np.random.default_rng(seed).standard_t(3, len(level)))


def level(**changes: float) -> Floats:
    """1 s a step, and from each `at_<step>` on that much more."""
    found = np.ones(len(STEPS))
    for name, more in changes.items():
        found[int(name.removeprefix("at_")) - STEPS[0] :] += more
    return found


@pytest.mark.parametrize("seed", range(10))
def test_a_jump(seed: int) -> None:
    found = change(noisy(seed, level(at_1250=0.1)), STEPS)
    assert found is not None
    assert found.shape == "jump"
    assert abs(found.step - 1250) <= 1
    assert found.between[0] - 2 <= 1250 <= found.between[1] + 2
    assert found.effect == pytest.approx(0.1, abs=0.02)
    assert found.p < 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_a_ramp(seed: int) -> None:
    found = change(noisy(seed, 1 + 0.3 * np.maximum(0, STEPS - 1150) / 250), STEPS)
    assert found is not None
    assert found.shape == "ramp"
    assert abs(found.step - 1150) <= 15
    assert found.after > 1.2


def test_two_jumps_are_no_ramp_and_began_with_the_first() -> None:
    found = change(noisy(3, level(at_1100=0.1, at_1300=0.1)), STEPS)
    assert found is not None
    assert (found.shape, found.step) == ("jump", 1100)
    assert found.effect == pytest.approx(0.2, abs=0.02)


def test_what_has_passed_is_no_change_for_the_worse() -> None:
    found = change(noisy(4, level(at_1100=0.3, at_1200=-0.3)), STEPS)
    assert found is not None
    assert found.effect < 0
    assert found.step == 1200


def test_noise_is_no_change() -> None:
    assert [seed for seed in range(200) if change(noisy(seed, level()), STEPS)] == []


def test_less_than_counts_is_no_change() -> None:
    assert change(noisy(5, level(at_1200=0.03)), STEPS) is None
    assert change(noisy(5, level(at_1200=0.03)), STEPS, effect=0.01) is not None


def test_steps_that_are_left_out_are_none_to_go_by() -> None:
    series, wanted = noisy(6, level()), np.ones(len(STEPS), dtype=bool)
    series[200::10] *= 30
    wanted[200::10] = False
    series[250] = np.nan
    assert change(series, STEPS, wanted) is None


def test_few_steps_say_nothing() -> None:
    assert change(np.array([1.0] * 7 + [9.0] * 7), np.arange(14)) is None


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-4, 1e4), st.integers(0, 1000))
def test_the_unit_of_time_does_not_matter(factor: float, seed: int) -> None:
    series = noisy(seed, level(at_1300=0.2))
    one, other = change(series, STEPS), change(factor * series, STEPS)
    assert one is not None
    assert other is not None
    assert (one.step, one.shape) == (other.step, other.shape)
    assert other.before == pytest.approx(factor * one.before)


def test_the_rank_test_agrees_with_counting_pairs() -> None:
    rng = np.random.default_rng(7)
    below = 0
    for _ in range(400):
        below += rank_test(rng.normal(size=15), rng.normal(size=25)) < 0.05
    assert 5 <= below <= 40
    assert rank_test(np.ones(20), np.ones(20)) == 1.0


def test_the_part_that_grew_is_named() -> None:
    job = simulate(SlowPlan(seed=1, cause="slow.data", effect=0.3, onset=250))
    found = changes_of(job.table)
    assert {"step_time_s", "data_wait_s"} <= found.keys()
    assert "compute_s" not in found
    assert abs(found["data_wait_s"].step - 250) <= 2


def test_a_named_earlier_run_is_the_baseline() -> None:
    fast, slow = (simulate(SlowPlan(seed=seed, step_s=s)).table for seed, s in ((1, 1.0), (2, 1.3)))
    assert changes_of(slow) == {}
    found = changes_of(slow, fast)["step_time_s"]
    assert found.step == 3  # the first that warms nothing up
    assert found.effect == pytest.approx(0.3, abs=0.03)


def test_a_change_far_back_in_a_long_run_is_found_without_reading_it(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.signals.mkdir(parents=True)
    rng = np.random.default_rng(8)
    for rank in range(2):
        took = (1 + 0.2 * (np.arange(30_000) >= 7_321)) * (1 + 0.01 * rng.standard_t(3, 30_000))
        t = 1e9 + np.cumsum(took)
        lines = [
            json.dumps({"t": round(at, 3), "step": step, "rank": rank, "step_time_s": round(s, 5)})
            for step, (at, s) in enumerate(zip(t.tolist(), took.tolist(), strict=True))
        ]
        run.signals_of(rank).write_text("\n".join(lines) + "\n")
    table = read_table(run)
    assert changes_of(table) == {}
    found = since_when(run, table)
    assert found is not None
    assert abs(found.step - 7_321) <= 2
    assert found.effect == pytest.approx(0.2, abs=0.02)


def test_the_way_down_from_a_burst_does_not_hide_the_rise_behind_it() -> None:
    found = change(noisy(1, level(at_1012=1.0) - level(at_1026=1.0) + level(at_1200=0.2)), STEPS)
    assert found is not None
    assert (found.rise > 0, abs(found.step - 1200) <= 2) == (True, True)


def test_a_warm_up_does_not_hide_a_rise_behind_it() -> None:
    row = level(at_1200=0.2)
    row[:30] += 1.5
    found = change(noisy(2, row), STEPS)
    assert found is not None
    assert (found.rise > 0, abs(found.step - 1200) <= 2) == (True, True)


def test_the_way_back_from_a_dip_is_no_rise() -> None:
    row = level()
    row[250:300] -= 0.2
    found = change(noisy(3, row), STEPS)
    assert found is None or found.rise <= 0
