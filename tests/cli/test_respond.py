"""What a keeper would do about a run now, and what comes of it when a person asks for it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from train_ledger.chaos import fleet
from train_ledger.cli import app
from train_ledger.run_dir import RunDir

SETTINGS = """\
[respond]
on_page = ["diagnose"]
exclude_command = ["leave-out", "--reason", "train ledger"]
restart_command = ["start-again"]
dump_wait_s = 0.2
stacks_wait_s = 0.2
"""


@pytest.fixture
def hung(tmp_path: Path) -> RunDir:
    """It has stood still for minutes, by the clock of now."""
    began_t = time.time() - 300.0
    made = fleet.write(
        tmp_path / "r42", fault="exception", culprit=5, hosts=2, ranks_per_host=4, start_t=began_t
    )
    made.run_dir.config_file.write_text(SETTINGS)
    return made.run_dir


def answer(*words: str) -> Any:
    return CliRunner().invoke(app, ["respond", *words])


def test_a_dry_run_says_who_would_be_asked_and_touches_nothing(hung: RunDir) -> None:
    before = sorted(hung.path.rglob("*"))
    said = answer(str(hung.path), "--dry-run").stdout
    assert "dry run: ranks 0-4,6-7 would be asked for the Flight Recorder" in said
    assert "exclude_command is not run" in said
    assert sorted(hung.path.rglob("*")) == before


def test_scripts_get_the_verdict_and_what_each_hook_would_read(hung: RunDir) -> None:
    done = answer(str(hung.path), "--dry-run", "--json")
    found = json.loads(done.stdout)
    assert found["dry_run"]
    assert found["asked"] == [0, 1, 2, 3, 4, 6, 7]
    assert found["diagnosis"]["ranks"] == [5]
    assert done.exit_code == 1
    hooks = {it["hook"]: it for it in found["hooks"]}
    assert hooks["exclude"]["command"] == ["leave-out", "--reason", "train ledger"]
    assert hooks["exclude"]["does"] == "withheld"
    assert hooks["restart"]["told"]["cause"] == found["diagnosis"]["cause"]


def test_without_it_the_answers_are_taken(hung: RunDir) -> None:
    said = answer(str(hung.path)).stdout
    assert "dumps and 0 stacks in" in said
    assert "culprit: rank 5" in said
    assert list(hung.requests.glob("by-hand-*-dump.json"))
    assert not hung.journal.exists()  # a keeper's alone


def test_it_says_where_nothing_is_set(tmp_path: Path) -> None:
    made = fleet.write(tmp_path / "r42", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    said = answer(str(made.run_dir.path), "--dry-run").stdout
    assert "exclude_command: none is set in [respond]" in said


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    done = answer(str(tmp_path), "--dry-run")
    assert done.exit_code == 2
