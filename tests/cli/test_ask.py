"""`train-ledger ask`: of living ranks, or a word on who did not answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from train_ledger.cli import app

TRAINING = """
import sys, time
import torch
import train_ledger
monitor = train_ledger.start(sys.argv[1])
for step in range(1, 10**9):
    (torch.ones(8, 8) @ torch.ones(8, 8)).sum()
    monitor.step(step)
    if step == 1:
        print("trains", flush=True)
    time.sleep(0.01)
"""


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Path]:
    """The run directory of a rank 5 that trains."""
    environ = {**os.environ, "RANK": "5", "WORLD_SIZE": "8"}
    command = [sys.executable, "-c", TRAINING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"trains\n"
        yield tmp_path
        process.kill()


def test_a_profile_of_who_trains_and_a_word_on_who_does_not(training: Path) -> None:
    asked = ["ask", str(training), "profile", "--ranks", "5,6", "--steps", "2", "--timeout-s", "20", "--json"]
    answer = CliRunner().invoke(app, [*asked[:-2], "20", "--json"])
    told = json.loads(answer.stdout)
    assert answer.exit_code == 1
    assert told["files"] == {"5": str(training / "traces" / "rank_5.json.gz")}
    assert Path(told["files"]["5"]).stat().st_size > 0
    assert "no answer in " in told["failed"]["6"]


def test_a_run_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "signals").mkdir()
    end = '{"t":2.0,"step":1,"rank":0}\n{"t":3.0,"rank":0,"attempt":0,"event":"run_end"}\n'
    (tmp_path / "signals" / "rank_00000.jsonl").write_text(end)
    answer = CliRunner().invoke(app, ["ask", str(tmp_path), "profile", "--timeout-s", "600"])
    assert (answer.exit_code, answer.stdout) == (3, "rank 0: its run has ended\n")


def test_what_a_rank_cannot_do_it_says(training: Path) -> None:
    answer = CliRunner().invoke(app, ["ask", str(training), "memory_snapshot", "--ranks", "5"])
    assert answer.exit_code == 3
    assert answer.stdout == (
        "rank 5: this process has not initialised CUDA, so there is no allocator to ask\n"
    )


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["ask", str(tmp_path / "none"), "profile"])
    assert answer.exit_code == 2
    assert "there is no such run directory" in answer.stderr


@pytest.mark.parametrize("ranks", ["", "x", "5-"])
def test_ranks_that_are_none(tmp_path: Path, ranks: str) -> None:
    (tmp_path / "run.json").write_text("{}")
    answer = CliRunner().invoke(app, ["ask", str(tmp_path), "profile", "--ranks", ranks])
    assert answer.exit_code == 2


def test_in_a_folder_that_no_job_has_begun_to_write_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("of something else\n")
    ran = subprocess.run(
        [sys.executable, "-m", "train_ledger", "ask", str(tmp_path), "profile"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"train-ledger: {tmp_path}: is no run directory")
    assert [it.name for it in tmp_path.iterdir()] == ["notes.md"]
