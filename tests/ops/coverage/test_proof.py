"""A row is right: with its signals the cause is told, and without them it is not – nor is another one."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from hang.recorder import Job
from train_ledger.chaos import fleet
from train_ledger.chaos.slow_fleet import SlowPlan, simulate, write_job
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.ops.coverage import coverage
from train_ledger.run_dir import RunDir


def told(run_dir, cause, at):
    """Whether coverage says that it could be told."""
    return next(it.told for it in coverage(run_dir, Config(), at=at).causes if it.cause == cause)


def without(run_dir, path, *fields):
    """A copy of the run of which no line has these fields."""
    shutil.copytree(run_dir.path, path)
    copy = RunDir(path)
    for _, file in copy.signal_files():
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        kept = ({key: value for key, value in line.items() if key not in fields} for line in lines)
        file.write_text("".join(json.dumps(line) + "\n" for line in kept))
    return copy


SLOW = {
    "slow.data": (("data_wait_s",), "slow.data"),
    "slow.gc": (("gc_s",), "slow.gc"),
    "slow.logging": (("log_s", "stdout_bytes"), "slow.logging"),
    "slow.fragmentation": (("num_alloc_retries", "num_device_alloc"), "slow.fragmentation"),
    "slow.host_memory": (("rss_bytes",), "slow.host_memory"),
    "slow.communication": (("comm_wait_s",), "slow.communication"),
    "slow.straggler.software": (("compute_s", "comm_wait_s"), "slow.straggler.software"),
}


@pytest.mark.parametrize("cause", sorted(SLOW))
def test_a_slow_job_is_told_by_its_signals_and_not_without_them(tmp_path, cause):
    fields, code = SLOW[cause]
    job = simulate(SlowPlan(7, dp=4, ranks_per_host=2, cause=cause, effect=0.5))
    whole = write_job(job, tmp_path / "whole")
    at = float(job.table.t.max()) + 1
    found = diagnose(whole, Config(), at=at)
    assert (found.cause, told(whole, code, at)) == (code, "yes")
    less = without(whole, tmp_path / "less", *fields)
    found = diagnose(less, Config(), at=at)
    assert found.cause != code
    assert found.ranks == ()
    assert told(less, code, at) == "no"
    untimed = without(whole, tmp_path / "untimed", "step_time_s")
    assert (diagnose(untimed, Config(), at=at).cause, told(untimed, code, at)) == (code, "yes")


def test_a_rank_that_did_not_come_is_named_by_dumps(tmp_path):
    made = fleet.write(tmp_path / "run", fault="process_gone", culprit=5)
    without_phases = [
        line
        for rank in range(16)
        if (path := made.run_dir.signals_of(rank))
        for line in [path.write_text("".join(it for it in path.open() if "backward" not in it))]
    ]
    assert len(without_phases) == 16
    blind = diagnose(made.run_dir, Config(), at=made.t)
    assert (blind.cause, blind.ranks) == ("unknown", ())
    job = Job(16)
    job.issue(range(16), done=True)
    job.issue([rank for rank in range(16) if rank != 5])
    for file in job.write(made.run_dir.comm_traces()).iterdir():
        os.utime(file, (made.t - 10, made.t - 10))
    seen = diagnose(made.run_dir, Config(), at=made.t)
    assert (seen.cause, seen.ranks) == ("hang.rank_missing", (5,))
    assert told(made.run_dir, "hang.rank_missing", made.t) == "yes"


def test_an_xid_is_the_cause_where_the_kernel_is_heard(tmp_path):
    made = fleet.write(tmp_path / "run", fault="hang", culprit=5)
    assert told(made.run_dir, "hardware.xid", made.t) == "no"
    assert diagnose(made.run_dir, Config(), at=made.t).cause != "hardware.xid"
    made.run_dir.hardware.mkdir()
    for host in made.hosts:
        (made.run_dir.hardware / f"{host}.kern.log").write_text("")
    line = f"{made.fault_t:.6f} node000 kernel: NVRM: Xid (PCI:0000:15:00): 79, GPU has fallen off the bus.\n"
    (made.run_dir.hardware / "node000.kern.log").write_text(line)
    assert told(made.run_dir, "hardware.xid", made.t) == "yes"
    assert diagnose(made.run_dir, Config(), at=made.t).cause == "hardware.xid"


def test_a_loss_that_nobody_writes_hides_a_nan(tmp_path):
    made = fleet.write(tmp_path / "run", fault="nan")
    assert (diagnose(made.run_dir, Config(), at=made.t).cause, told(made.run_dir, "numeric.nan", made.t)) == (
        "numeric.nan",
        "yes",
    )
    less = without(made.run_dir, tmp_path / "less", "loss", "grad_norm")
    assert diagnose(less, Config(), at=made.t).cause != "numeric.nan"
    assert told(less, "numeric.nan", made.t) == "no"
