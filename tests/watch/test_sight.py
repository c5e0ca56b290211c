"""Whether a run can be read at all is looked at, beside what it says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from train_ledger.ledger import RunState
from train_ledger.run_dir import RunDir
from train_ledger.watch.sight import Sight

STATE = RunState("r42", t=100.0)


def run_of(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "r42")
    run.signals.mkdir(parents=True)
    return run


def test_nothing_is_said_of_a_run_that_can_be_read(tmp_path: Path) -> None:
    assert Sight(run_of(tmp_path)).seen(STATE) is STATE


def test_a_folder_that_was_never_there_is_not_missed(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert Sight(run).seen(STATE) is STATE, "of a run that only logs tell of"


@pytest.mark.parametrize("gone", ["", "signals"])
def test_a_folder_that_is_gone_is_said_since_when_and_back_again(tmp_path: Path, gone: str) -> None:
    run = run_of(tmp_path)
    sight = Sight(run)
    sight.seen(STATE)
    away = tmp_path / "away"
    (run.path / gone).rename(away)
    found = sight.seen(STATE)
    assert found.unreadable_since_t == 100.0
    assert found.unreadable is not None
    assert "No such file or directory" in found.unreadable
    assert sight.seen(replace(STATE, t=200.0)).unreadable_since_t == 100.0
    away.rename(run.path / gone)
    assert sight.seen(STATE) is STATE


def test_a_file_system_that_answers_with_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(os, "scandir", refuse)
    found = Sight(run_of(tmp_path)).seen(STATE)
    assert found.unreadable is not None
    assert found.unreadable.endswith("Stale file handle")
