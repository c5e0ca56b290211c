"""`train-ledger nsys` runs a rank under nsys where it is one of those that are looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STAND_IN = """#!/bin/sh
echo "nsys $*" >> "$NSYS_CALLS"
while [ "$1" != "-o" ]; do shift; done
shift 2
exec "$@"
"""
SHOW = "import os; print(os.environ.get('TRAIN_LEDGER_NSYS_REPORT', 'as it is'))"


@pytest.fixture
def path(tmp_path: Path) -> str:
    program = tmp_path / "bin" / "nsys"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def run(tmp_path: Path, path: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "train_ledger", "nsys", *arguments, "--", sys.executable, "-c", SHOW]
    calls = {"PATH": path, "NSYS_CALLS": str(tmp_path / "calls")}
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    return subprocess.run(
        command, env={**kept, **calls, **environ}, cwd=tmp_path, capture_output=True, text=True, check=False
    )


def test_on_a_chosen_rank(tmp_path: Path, path: str) -> None:
    done = run(tmp_path, path, "--ranks", "0-7,512", RANK="512", WORLD_SIZE="1024")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/nsys/rank_512.nsys-rep\n")
    called = (tmp_path / "calls").read_text()
    for option in (
        "profile -t cuda,nvtx,osrt", "--capture-range=cudaProfilerApi", "--capture-range-end=stop",
        "--cuda-graph-trace=node", f"-o {tmp_path}/nsys/rank_512 ",
    ):  # fmt: skip
        assert option in called


@pytest.mark.parametrize("rank", ["8", "511", ""])
def test_on_others_the_command_runs_as_it_is(tmp_path: Path, path: str, rank: str) -> None:
    done = run(tmp_path, path, "--ranks", "0-7,512", RANK=rank, WORLD_SIZE="1024")
    assert (done.returncode, done.stdout) == (0, "as it is\n")
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(("rank", "is_chosen"), [("0", True), ("3", True), ("4", False), ("63", True)])
def test_else_one_tensor_parallel_group_and_a_far_rank(
    tmp_path: Path, path: str, rank: str, is_chosen: bool
) -> None:
    (tmp_path / "run.json").write_text('{"world_size": 64, "parallelism": {"tp": 4}}')
    done = run(tmp_path, path, "--run", str(tmp_path), RANK=rank, WORLD_SIZE="64")
    assert done.returncode == 0
    assert ("nsys-rep" in done.stdout) is is_chosen


def test_the_exit_status_is_the_commands_own(tmp_path: Path, path: str) -> None:
    command = [sys.executable, "-m", "train_ledger", "nsys", "--ranks", "0", "--", "sh", "-c", "exit 7"]
    environ = {**os.environ, "PATH": path, "NSYS_CALLS": str(tmp_path / "calls"), "RANK": "0"}
    assert subprocess.run(command, env=environ, cwd=tmp_path, check=False).returncode == 7


def test_without_nsys_a_chosen_rank_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "/nowhere", "--ranks", "0", RANK="0")
    assert done.returncode == 2
    assert "is to run under nsys, which is not in PATH" in done.stderr
