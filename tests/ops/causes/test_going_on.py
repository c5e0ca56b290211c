"""A run that goes on is told where nobody hears a host of it any more, or where it reads other data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.run_dir import RunDir

T = 1_790_000_000.0
BATCH = 512


def put(run, lines):
    """`lines` are (rank, line) pairs."""
    run.signals.mkdir(parents=True, exist_ok=True)
    for rank, line in lines:
        with run.signals_of(rank).open("a") as file:
            file.write(json.dumps({"rank": rank, **line}) + "\n")


def begin(rank, t, attempt=0):
    host = f"node{rank // 2}"
    start = {"event": "run_start", "world_size": 4, "host": host, "local_rank": rank % 2, "pid": 70 + rank}
    return {"t": t, "step": 0, "attempt": attempt, **start}


def steps(first, last, t, *, attempt=0, off=0):
    """One step every two seconds, `t` is when `first` was done; the data stand `off` samples elsewhere."""
    for step in range(first, last + 1):
        told = {"step": step, "attempt": attempt, "loss": 2.0, "consumed_samples": step * BATCH + off}
        yield {"t": t + 2 * (step - first), **told}


def typed(command):
    """What it prints, typed where ours is on the PATH."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    ).stdout


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path / "run")


def test_a_host_that_is_heard_no_more_while_others_go_on_is_named_and_nobody_of_its_ranks(run):
    put(run, [(rank, begin(rank, T)) for rank in range(4)])
    for rank in range(4):
        put(run, [(rank, it) for it in steps(1, 300 if rank < 2 else 100, T + 10)])
    told = diagnose(run, Config(), at=T + 10 + 2 * 299)
    assert (told.state, told.cause, told.hosts, told.ranks) == ("running", "telemetry_lost", ("node1",), ())
    assert "nothing comes from host node1 (2 ranks)" in told.evidence[0]
    assert told.since_t == pytest.approx(T + 10 + 2 * 99)
    assert [it.command for it in told.next] == ["ssh node1 uptime", f"train-ledger coverage {run.path}"]
    assert diagnose(run, Config(), at=T + 10 + 2 * 110).cause == "none"


@pytest.mark.parametrize(
    ("off", "cause"), [(0, "none"), (-3 * BATCH, "data.position"), (9 * BATCH, "data.position")]
)
def test_a_restart_at_other_data_is_told_with_the_step_and_both_positions(run, off, cause):
    put(run, [(rank, begin(rank, T)) for rank in range(4)])
    put(run, [(rank, it) for rank in range(4) for it in steps(1, 60, T + 10)])
    put(run, [(rank, begin(rank, T + 200, 1)) for rank in range(4)])
    again = list(steps(41, 90, T + 220, attempt=1, off=off))
    put(run, [(rank, it) for rank in range(4) for it in again])
    told = diagnose(run, Config(), at=T + 320)
    assert (told.cause, told.ranks) == (cause, ())
    if cause == "data.position":
        assert told.since_step == 41
        assert f"{41 * BATCH + off} at step 41, was {41 * BATCH}" in told.evidence[0]
        both = typed(told.next[0].command).splitlines()
        assert [json.loads(line)["consumed_samples"] for line in both] == [41 * BATCH, 41 * BATCH + off]


def test_by_logs_the_command_reads_these(run):
    """Megatron-LM's, which begins again 800 samples before where the data stood."""
    run.logs.mkdir(parents=True)
    for log, first, last, t, off in [("a.log", 1, 60, T, 0), ("b.log", 41, 90, T + 200, -800)]:
        lines = (
            f" [{datetime.fromtimestamp(t + 2 * (it - first)):%Y-%m-%d %H:%M:%S.%f}] iteration {it}/ 100 | "
            f"consumed samples: {it * BATCH + off} | elapsed time per iteration (ms): 2000.0 | lm loss: 2.0 |"
            for it in range(first, last + 1)
        )
        (run.logs / log).write_text("\n".join(lines) + "\n")
    told = diagnose(run, Config(), at=T + 302)
    assert told.cause == "data.position"
    both = typed(told.next[0].command).splitlines()
    assert {json.loads(line)["consumed_samples"] for line in both} == {41 * BATCH, 41 * BATCH - 800}
