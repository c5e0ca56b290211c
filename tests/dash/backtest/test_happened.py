"""What a run shows of its incidents afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.dash.backtest import PastIncident, Replay, record
from train_ledger.dash.backtest.happened import Happened


def happened(path: Path, fault: str | None) -> tuple[fleet.Fleet, list[PastIncident]]:
    job = fleet.write(path / "r42", ranks_per_host=2, fault=fault, culprit=3, checkpoint_every=20)
    recording = record(job.run_dir)
    seen = Happened(Config().alerts)
    replay = Replay(recording.run, Config(), recording.run_json, witness=seen.see)
    replay.play_to_end(recording.known)
    return job, list(seen.incidents())


@pytest.mark.parametrize("fault", ["hang", "init_hang", "process_gone", "exception"])
def test_a_run_that_stands_is_a_stall_from_its_last_step_on(fault: str, tmp_path: Path) -> None:
    job, (stall,) = happened(tmp_path, fault)
    assert stall.kind == "stall"
    assert job.fault_t is not None
    assert stall.t == pytest.approx(job.fault_t, abs=0.1)


def test_a_job_that_is_taken_away_is_an_attempt_that_ended(tmp_path: Path) -> None:
    job, (ended,) = happened(tmp_path, "killed")
    assert (ended.kind, ended.t) == ("attempt_ended", pytest.approx(job.fault_t, abs=0.1))


@pytest.mark.parametrize(("fault", "kind"), [("nan", "nonfinite_loss"), ("checkpoint_failed", "save_failed")])
def test_a_loss_that_is_none_and_a_save_that_failed(fault: str, kind: str, tmp_path: Path) -> None:
    job, found = happened(tmp_path, fault)
    assert job.fault_t is not None
    first = found[0]
    assert first.kind == kind
    assert 0 <= first.t - job.fault_t <= 4


def test_restarts_that_come_to_nothing_are_one_loop(tmp_path: Path) -> None:
    _, found = happened(tmp_path, "restart_loop")
    assert [it.kind for it in found] == ["restart_loop"]


@pytest.mark.parametrize("fault", [None, "slow_all", "slow_rank"])
def test_a_run_that_goes_on_has_none(fault: str | None, tmp_path: Path) -> None:
    _, found = happened(tmp_path, fault)
    assert [it for it in found if it.kind != "stall"] == []


def test_a_restart_that_comes_at_once_is_none(tmp_path: Path) -> None:
    _, found = happened(tmp_path, "restart")
    assert "attempt_ended" not in {it.kind for it in found}
