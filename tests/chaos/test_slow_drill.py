"""Real jobs that are made slow are rightly named from outside, by `slow` and by `diagnose`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pytest
from typer.testing import CliRunner

from train_ledger.chaos.slow_drill import Drilled, run_job
from train_ledger.chaos.slow_job import MODES, ONSET
from train_ledger.cli import app
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.run_dir import RunDir

PLANTED = {
    "compute": ("slow.straggler.software", [2]),
    "data": ("slow.straggler.software", [2]),
    "logging": ("slow.logging", []),
    "none": ("none", []),
}


TOO_MUCH_LONGER = 1.03
"""A healthy job whose steps take so many times as long was slowed by what else this machine does."""


def steps_of(run_dir):
    """The lines of rank 0 that tell of a step."""
    written = map(json.loads, run_dir.signals_of(0).read_bytes().splitlines())
    return [line for line in written if "step" in line and "event" not in line]


def assert_right(mode, run_dir, cause, ranks):
    """What was planted is named; of a healthy job that the machine slowed down, no rank is."""
    took_s = {line["step"]: line["step_time_s"] for line in steps_of(run_dir) if "step_time_s" in line}
    before_s = median(s for step, s in took_s.items() if step <= ONSET)
    after_s = median(s for step, s in took_s.items() if step > ONSET)
    if mode == "none" and after_s > TOO_MUCH_LONGER * before_s:
        assert (cause in ("none", "unknown", "slow.communication"), ranks) == (True, []), cause
    else:
        assert (cause, ranks) == PLANTED[mode]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Jobs that mostly sleep run side by side; one that writes without end takes any other its cores."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("slow")
    run_dirs = {mode: RunDir(folder / mode) for mode in MODES}
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda mode: run_job(run_dirs[mode], mode, 2), set(MODES) - {"logging"}))
    run_job(run_dirs["logging"], "logging", 2)
    return run_dirs


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_cause_of_a_real_job_is_named_from_outside(jobs, mode):
    told = CliRunner().invoke(app, ["slow", str(jobs[mode].path), "--json"])
    answer = json.loads(told.stdout)
    assert_right(mode, jobs[mode], answer["cause"], answer["ranks"])
    assert told.exit_code == (0 if answer["cause"] == "none" else 1)
    if mode != "none":
        assert abs(answer["since_step"] - ONSET) <= 15


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_diagnose_says_the_same_while_the_job_goes_on(jobs, mode):
    found = diagnose(jobs[mode], Config(), at=steps_of(jobs[mode])[-1]["t"])
    assert_right(mode, jobs[mode], found.cause, list(found.ranks))


@pytest.mark.slow
def test_which_part_of_the_culprits_work_is_longer_is_told(jobs):
    told = CliRunner().invoke(app, ["slow", str(jobs["data"].path), "--json"])
    assert json.loads(told.stdout)["details"]["phase"] == "data"


def test_a_wrong_rank_and_a_wrong_step_are_not_right():
    assert Drilled("compute", (2,), "slow.straggler.software", (2,), ONSET + 1).right
    assert not Drilled("compute", (2,), "slow.straggler.software", (1,), ONSET + 1).right
    assert not Drilled("compute", (2,), "slow.straggler.software", (2,), ONSET + 50).right
    assert not Drilled("none", (), "slow.data", (), None).right
