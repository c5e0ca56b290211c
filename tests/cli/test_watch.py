"""The keeper, as it is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from train_ledger.cli import app
from train_ledger.cli.run_wanted import run_to_write
from train_ledger.config import FIRST_ANSWERS, Config
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


def test_first_answers_are_off_until_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[tuple[str, ...]] = []

    def watch(*runs: tuple[RunDir, Config], **_: object) -> int:
        kept.extend(config.respond.on_page for _, config in runs)
        return 0

    monkeypatch.setattr("train_ledger.watch.watch", watch)
    for options in ([], ["--respond"]):
        CliRunner().invoke(app, ["watch", str(tmp_path), *options], catch_exceptions=False)
    assert kept == [(), FIRST_ANSWERS]


def test_whoever_starts_a_keeper_is_told_that_they_are_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("train_ledger.watch.loop._turn_until", interrupted)
    told = CliRunner().invoke(app, ["watch", str(tmp_path), "--no-web"])
    assert "a page goes out without a verdict: [respond] on_page is off; --respond, or" in told.stdout
    asked = CliRunner().invoke(app, ["watch", str(tmp_path), "--no-web", "--respond"])
    assert "[respond] on_page is off" not in asked.stdout
