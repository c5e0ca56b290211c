"""Where real processes stand."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from train_ledger.cli import app

PROGRAM = '''
import sys, time
def wait_for_batch():
    print("up", flush=True)
    time.sleep(60)
IN_TORCH = """
def all_reduce():
    print("up", flush=True)
    time.sleep(60)
"""
exec(compile(IN_TORCH, "torch/distributed/distributed_c10d.py", "exec"))
def train():
    all_reduce() if sys.argv[1] == "collective" else wait_for_batch()
train()
'''


@contextmanager
def _process(script: Path, where: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, str(script), where], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture(scope="module")
def pids(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """Three processes, of which the last stands elsewhere."""
    script = tmp_path_factory.mktemp("stacks") / "train.py"
    script.write_text(PROGRAM)
    with (
        _process(script, "collective") as first,
        _process(script, "collective") as second,
        _process(script, "loader") as third,
    ):
        yield [first, second, third]


def _stacks(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(app, ["stacks", *map(str, arguments)], catch_exceptions=False)


def _run_of(folder: Path, pids: list[int], host: str) -> Path:
    for rank, pid in enumerate(pids):
        start = {"t": 1.0, "event": "run_start", "rank": rank, "attempt": 0, "host": host, "pid": pid}
        (folder / "signals").mkdir(exist_ok=True)
        (folder / "signals" / f"rank_{rank:05d}.jsonl").write_text(json.dumps(start) + "\n")
    return folder


def test_the_odd_rank_of_a_run_comes_first(pids: list[int], tmp_path: Path) -> None:
    told = _stacks(_run_of(tmp_path, pids, socket.gethostname()))
    assert told.exit_code == 0
    assert told.stdout.startswith(
        "rank 2 stands apart: 2 different stacks of 3 ranks\n\nrank 2, thread MainThread\n"
    )
    assert "wait_for_batch" in told.stdout.split("ranks 0-1")[0]
    assert f"train-ledger diagnose {tmp_path}" in told.stdout


def test_ranks_jsonl_is_enough(pids: list[int], tmp_path: Path) -> None:
    lines = [
        json.dumps({"t": 1.0, "rank": rank, "host": socket.gethostname(), "pid": pid})
        for rank, pid in enumerate(pids)
    ]
    (tmp_path / "ranks.jsonl").write_text("\n".join([*lines, '{"half']))
    told = json.loads(_stacks(tmp_path, "--json").stdout)
    assert [group["ranks"] for group in told["groups"]] == [[2], [0, 1]]
    assert told["schema"] == 1


def test_the_later_attempt_counts(pids: list[int], tmp_path: Path) -> None:
    run = _run_of(tmp_path, [1 << 22, 1 << 22, 1 << 22], socket.gethostname())
    for rank, pid in enumerate(pids):
        again = {
            "t": 0.5,
            "event": "run_start",
            "rank": rank,
            "attempt": 1,
            "host": socket.gethostname(),
            "pid": pid,
        }
        with (run / "signals" / f"rank_{rank:05d}.jsonl").open("a") as file:
            file.write(json.dumps(again) + "\n")
    told = json.loads(_stacks(run, "--json").stdout)
    assert told["unreadable"] == []


def test_processes_by_number(pids: list[int], tmp_path: Path) -> None:
    gone = 1 << 22
    told = _stacks(*(f"--pid={pid}" for pid in [*pids, gone]), "--save", tmp_path / "kept")
    assert told.stdout.startswith(f"pid {pids[2]} stands apart: 2 different stacks of 3 pids\n")
    assert f"  - pid {gone}: " in told.stdout, "what was not taken is told"
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == sorted(
        f"rank_{pid}.json" for pid in pids
    )
    again = _stacks("--from", tmp_path / "kept")
    assert "2 different stacks of 3 ranks" in again.stdout


def test_where_nothing_can_be_taken_it_cannot_tell() -> None:
    told = _stacks("--pid", 1 << 22)
    assert told.exit_code == 3
    assert told.stdout.startswith("cannot tell, because no stack could be read\n")


def test_ranks_of_other_hosts_are_looked_for_there(pids: list[int], tmp_path: Path) -> None:
    told = _stacks(_run_of(tmp_path, pids, "node-7"))
    assert told.exit_code == 2
    assert "run this on node-7" in told.stderr


def test_stacks_of_a_hostile_name_move_nothing(tmp_path: Path) -> None:
    (tmp_path / "rank_0.txt").write_text(
        'Process 1: x\n\nThread 1 (idle): "MainThread"\n    a\x1b[2Jb (x\x07y.py:3)\n'
    )
    told = _stacks("--from", tmp_path)
    assert "\x1b" not in told.stdout
    assert "\x07" not in told.stdout
    assert os.linesep.join(["    x\ufffdy.py:3 ab"]) in told.stdout


@pytest.mark.parametrize(
    "line", ['{"rank":1e400}', "[" * 100_000, '{"rank":0,"pid":1,"t":1' + "0" * 400 + "}"]
)
def test_a_bad_line_of_ranks_jsonl_costs_only_itself(line: str, pids: list[int], tmp_path: Path) -> None:
    good = {"t": 1.0, "rank": 1, "host": socket.gethostname(), "pid": pids[0]}
    (tmp_path / "ranks.jsonl").write_text(f"{line}\n{json.dumps(good)}\n")
    told = json.loads(_stacks(tmp_path, "--json").stdout)
    assert [group["ranks"] for group in told["groups"]] == [[1]]


def test_what_was_not_read_on_the_way_is_told(pids: list[int], tmp_path: Path) -> None:
    run = _run_of(tmp_path, pids[:1], socket.gethostname())
    os.mkfifo(run / "ranks.jsonl")
    (run / "signals" / "rank_00001.jsonl").write_text("garbage\n")
    told = _stacks(run)
    assert "ranks.jsonl: is a FIFO" in told.stdout
    assert "signals: 1 × not_a_file (ranks.jsonl), 1 × not_json (signals/rank_00001.jsonl:1)" in told.stdout
