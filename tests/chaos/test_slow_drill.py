"""Real jobs that are made slow are rightly named from outside, by `slow` and by `diagnose`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

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


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """All jobs side by side, two at a time."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("slow")
    run_dirs = {mode: RunDir(folder / mode) for mode in MODES}
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda mode: run_job(run_dirs[mode], mode, 2), MODES))
    return run_dirs


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_cause_of_a_real_job_is_named_from_outside(jobs, mode):
    told = CliRunner().invoke(app, ["slow", str(jobs[mode].path), "--json"])
    answer = json.loads(told.stdout)
    assert (answer["cause"], answer["ranks"]) == PLANTED[mode]
    assert told.exit_code == (0 if mode == "none" else 1)
    if mode != "none":
        assert abs(answer["since_step"] - ONSET) <= 15


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_diagnose_says_the_same_while_the_job_goes_on(jobs, mode):
    last = jobs[mode].signals_of(0).read_bytes().splitlines()
    steps = [line for line in map(json.loads, last) if "step" in line and "event" not in line]
    found = diagnose(jobs[mode], Config(), at=steps[-1]["t"])
    assert (found.cause, list(found.ranks)) == PLANTED[mode]


@pytest.mark.slow
def test_which_part_of_the_culprits_work_is_longer_is_told(jobs):
    told = CliRunner().invoke(app, ["slow", str(jobs["data"].path), "--json"])
    assert json.loads(told.stdout)["details"]["phase"] == "data"


def test_a_wrong_rank_and_a_wrong_step_are_not_right():
    assert Drilled("compute", (2,), "slow.straggler.software", (2,), ONSET + 1).right
    assert not Drilled("compute", (2,), "slow.straggler.software", (1,), ONSET + 1).right
    assert not Drilled("compute", (2,), "slow.straggler.software", (2,), ONSET + 50).right
    assert not Drilled("none", (), "slow.data", (), None).right
