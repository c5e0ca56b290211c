"""`train-ledger trace take`, `trace memory` and `trace nsys`."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slow.trace.test_memory_snapshot import block, segment
from slow.trace.test_nsys_export import export
from train_ledger.cli import app

TRAINING = """
import sys, time
import torch
import torch.distributed as dist
import train_ledger
dist.init_process_group("gloo")
monitor = train_ledger.start(sys.argv[1])
for step in range(1, 10**9):
    total = (torch.ones(64, 64) @ torch.ones(64, 64)).sum()
    dist.all_reduce(total)
    time.sleep(0.02)
    monitor.step(step)
"""


def invoke(*arguments: object) -> tuple[int, str, str]:
    answer = CliRunner().invoke(app, ["trace", *map(str, arguments)])
    return answer.exit_code, answer.stdout, answer.stderr


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Path]:
    """The run directory of two ranks that train under torchrun."""
    (tmp_path / "train.py").write_text(TRAINING)
    run = tmp_path / "r42"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with subprocess.Popen([*command, str(tmp_path / "train.py"), str(run)], cwd=tmp_path) as process:
        deadline = time.monotonic() + 400
        signals = run / "signals" / "rank_00001.jsonl"
        while not (signals.exists() and b'"step":' in signals.read_bytes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        yield run
        process.terminate()


@pytest.mark.slow
def test_of_a_living_job_all_ranks_record_the_same_steps(job: Path) -> None:
    status, out, _ = invoke("take", job, "--ranks", "0-2", "--steps", "4", "--wait-s", "40", "--json")
    told = json.loads(out)
    assert status == 1, "there is no rank 2"
    assert set(told["files"]) == {"0", "1"}
    assert "no answer in 40 s" in told["failed"]["2"]
    steps = []
    for file in told["files"].values():
        assert Path(file).parent == job / "traces" / told["name"]
        with gzip.open(file) as text:
            names = {str(event.get("name")) for event in json.load(text)["traceEvents"]}
        steps.append(sorted(name for name in names if name.startswith("ProfilerStep#")))
    assert steps[0] == steps[1] == [f"ProfilerStep#{told['first_step'] + number}" for number in range(4)]
    status, out, _ = invoke("take", job, "--ranks", "0,1", "--steps", "2", "--wait-s", "60", "--breakdown")
    assert status == 0
    assert "nothing of a GPU was recorded" in out
    newest = json.loads((job / "signals" / "rank_00000.jsonl").read_text().splitlines()[-1])
    assert newest.get("event") != "exception"


def test_ranks_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "signals").mkdir()
    (tmp_path / "signals" / "rank_00000.jsonl").write_text('{"t":3.0,"rank":0,"event":"run_end"}\n')
    status, out, _ = invoke("take", tmp_path)
    assert (status, out) == (3, "rank 0: its run has ended\n")
    status, _, err = invoke("take", tmp_path / "none")
    assert status == 2
    assert "no such run directory" in err


def test_memory(tmp_path: Path) -> None:
    path = tmp_path / "rank_5.pickle"
    pieces = [block(10, "active_allocated", 8), block(6, "inactive")]
    path.write_bytes(pickle.dumps({"segments": [segment(*pieces)], "device_traces": []}))
    status, out, _ = invoke("memory", path)
    assert status == 0
    assert "in gaps        0.006 GiB, 38% of what is reserved" in out
    assert "train.py:8 forward" in out
    told = json.loads(invoke("memory", path, "--json")[1])
    assert (told["schema"], told["inactive_split_bytes"]) == (1, 6 << 20)
    path.write_bytes(b"no pickle")
    status, _, err = invoke("memory", path)
    assert status == 2
    assert "Traceback" not in err


def test_kernels_of_an_nsys_export(tmp_path: Path) -> None:
    path = export(tmp_path / "r.sqlite", [(0, 10_000, 1), (0, 30_000, 2)])
    status, out, _ = invoke("nsys", path)
    assert status == 0
    assert out.splitlines()[0] == "2 kinds of kernels, 0.040 ms in all"
    assert json.loads(invoke("nsys", path, "--json")[1])["kernels"][1]["name"] == "gemm"
    status, _, err = invoke("nsys", tmp_path / "none.sqlite")
    assert status == 2
    assert "No such file" in err
