"""A simulated job tells what its ranks would: in files as in memory, and with the truth beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from train_ledger.chaos.slow_fleet import CAUSES, SlowPlan, random_plan, simulate, write_job
from train_ledger.slow.table import read_table


def test_files_tell_what_the_table_holds(tmp_path: Path) -> None:
    plan = SlowPlan(seed=1, dp=2, tp=2, pp=2, steps=60, checkpoint_every=20, evaluate_every=25)
    job = simulate(replace(plan, cause="slow.gc", onset=30))
    read = read_table(write_job(job, tmp_path))
    assert read.steps.tolist() == job.table.steps.tolist()
    assert read.hosts == job.table.hosts
    assert read.stages == job.table.stages
    assert np.array_equal(read.steady, job.table.steady)
    for name, told in job.table.values.items():
        np.testing.assert_allclose(read.values[name], told)


def test_the_same_plan_is_the_same_job() -> None:
    one, other = (simulate(random_plan(3, "slow.straggler.software")) for _ in range(2))
    assert one.truth == other.truth
    np.testing.assert_array_equal(one.table.of("compute_s"), other.table.of("compute_s"))


@pytest.mark.parametrize("cause", CAUSES)
def test_every_fault_makes_steps_slower_from_its_onset_on(cause: str) -> None:
    job = simulate(random_plan(5, cause))
    step_s = job.table.of("step_time_s")[0][job.table.steady]
    steps = job.table.steps[job.table.steady]
    assert job.truth.cause == cause
    assert job.truth.onset is not None
    if job.truth.onset:
        before, after = step_s[steps < job.truth.onset], step_s[steps >= job.truth.onset]
        assert after.mean() > 1.03 * before.mean()


def test_all_ranks_end_their_steps_together_and_nobody_works_longer_than_a_step() -> None:
    table = simulate(random_plan(7, "slow.straggler.clock")).table
    assert np.ptp(table.of("step_time_s"), axis=0).max() == 0
    assert (table.of("comm_wait_s") > 0).all()


def test_log_spaced_lines() -> None:
    job = simulate(SlowPlan(seed=2, steps=100, stride=10))
    assert job.table.steps.tolist() == list(range(9, 100, 10))
