"""`train-ledger top` looks on: it writes nothing and needs no keeper."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from train_ledger.cli import app
from train_ledger.run_dir import RunDir


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "r42")
    run.signals.mkdir(parents=True)
    run.run_json.write_text(json.dumps({"run": "r42", "world_size": 2}))
    t = time.time() - 60
    for rank in range(2):
        start = {"t": t, "rank": rank, "event": "run_start", "world_size": 2, "host": "n0"}
        steps = [
            {"t": t + step, "step": step, "rank": rank, "loss": 2.0, "step_time_s": 1.0, "mfu": 41.0}
            for step in range(1, 61)
        ]
        lines = "".join(json.dumps(line) + "\n" for line in (start, *steps))
        run.signals_of(rank).write_text(lines)
    return run


def test_where_no_terminal_reads_it_is_shown_once(run_dir: RunDir) -> None:
    done = CliRunner().invoke(app, ["top", str(run_dir.path)])
    assert done.exit_code == 0
    assert done.stdout.startswith("r42  nothing wrong: step 60")
    assert "\x1b" not in done.stdout
    assert sorted(path.name for path in run_dir.path.iterdir()) == ["run.json", "signals"]


def test_as_json(run_dir: RunDir) -> None:
    answer = json.loads(CliRunner().invoke(app, ["top", str(run_dir.path), "--json"]).stdout)
    assert (answer["schema"], answer["state"]["step"], answer["tone"]) == (1, 60, "fine")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["/nowhere"], "there is no such run directory"),
        ([".", "--every-s", "0"], "is not from 0.1 to 86400 seconds"),
        ([".", "--ranks", "0"], "greater than or equal to 1"),
    ],
)
def test_wrong_usage_is_told_in_a_line(arguments: list[str], why: str) -> None:
    done = CliRunner().invoke(app, ["top", *arguments])
    assert done.exit_code == 2
    assert why in done.stderr


@pytest.mark.slow
def test_in_a_terminal_it_goes_on_until_it_is_interrupted(run_dir: RunDir) -> None:
    mine, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "train_ledger", "top", str(run_dir.path), "--every-s", "0.2"],
        stdin=its,
        stdout=its,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
        start_new_session=True,
    )
    os.close(its)
    seen = b""
    deadline = time.monotonic() + 30
    try:
        while b"step 60" not in seen and b"60" not in seen[-4000:] and time.monotonic() < deadline:
            seen += os.read(mine, 65536)
        with run_dir.signals_of(0).open("a") as file:
            file.write(json.dumps({"t": time.time(), "step": 61, "rank": 0, "loss": 2.0}) + "\n")
        with run_dir.signals_of(1).open("a") as file:
            file.write(json.dumps({"t": time.time(), "step": 61, "rank": 1, "loss": 2.0}) + "\n")
        while b"step 61" not in seen and time.monotonic() < deadline:
            seen += os.read(mine, 65536)
        assert b"step 61" in seen
        process.send_signal(2)
        assert process.wait(timeout=10) == 0
    finally:
        process.kill()
        os.close(mine)
