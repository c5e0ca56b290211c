"""The keeper, as it is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from train_ledger.cli import app
from train_ledger.cli.run_wanted import run_to_write
from train_ledger.ledger import KeeperLock
from train_ledger.run_dir import RunDir


def test_a_second_keeper_is_told_who_holds_the_run(tmp_path: Path) -> None:
    with KeeperLock(RunDir(tmp_path).keeper_lock):
        told = CliRunner().invoke(app, ["watch", str(tmp_path), "--no-web"], catch_exceptions=False)
    assert told.exit_code == 2
    assert told.stderr.startswith("train-ledger: ")
    assert told.stderr.count("\n") == 1
    assert "pid" in told.stderr


@pytest.mark.parametrize("there", [None, "slurm-4711.out", "rank_0.log", "train-ledger.toml", "logs/x.log"])
def test_a_keeper_may_be_started_before_its_job(tmp_path: Path, there: str | None) -> None:
    if there:
        (tmp_path / there).parent.mkdir(exist_ok=True)
        (tmp_path / there).touch()
    assert run_to_write(tmp_path, "watch").path == tmp_path
