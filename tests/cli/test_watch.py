"""The keeper, as it is started."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from train_ledger.cli import app
from train_ledger.ledger import KeeperLock
from train_ledger.run_dir import RunDir


def test_a_second_keeper_is_told_who_holds_the_run(tmp_path: Path) -> None:
    with KeeperLock(RunDir(tmp_path).keeper_lock):
        told = CliRunner().invoke(app, ["watch", str(tmp_path), "--no-web"], catch_exceptions=False)
    assert told.exit_code == 2
    assert told.stderr.startswith("train-ledger: ")
    assert told.stderr.count("\n") == 1
    assert "pid" in told.stderr
