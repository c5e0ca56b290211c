"""The GPU's time by what it does, to the nanosecond."""

from __future__ import annotations

from pathlib import Path

from slow.trace.traces import copy, kernel, launch, step, write
from train_ledger.slow.trace.activity import Activity, activity
from train_ledger.slow.trace.reading.trace import read_trace

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long)"


def test_communication_behind_computation_and_beyond_it(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "t.json", kernel(0, 100), kernel(50, 200, NCCL), copy(220, 230)))
    assert activity(trace) == Activity(230_000, 100_000, 150_000, 100_000, 10_000, 20_000, 100 * 50 / 150)


def test_streams_that_overlap_make_no_idle_time(tmp_path: Path) -> None:
    busy = [kernel(0, 100), kernel(0, 10, stream=9), kernel(90, 100, stream=9)]
    assert activity(read_trace(write(tmp_path / "t.json", *busy))).idle_ns == 0


def test_short_kernels_lose_nothing_to_rounding(tmp_path: Path) -> None:
    many = [kernel(0.3 + 2 * number, 0.3 + 2 * number + 1.6) for number in range(1000)]
    assert activity(read_trace(write(tmp_path / "t.json", *many))).compute_ns == 1_600_000


def test_the_last_step_may_have_been_recorded_in_part(tmp_path: Path) -> None:
    events = [step(1, 0, 10), launch(1, 2, 1), step(2, 10, 20), launch(11, 12, 2)]
    kernels = [kernel(15, 25, correlation=1), kernel(30, 60, correlation=2), kernel(1, 9, correlation=77)]
    trace = read_trace(write(tmp_path / "t.json", *events, *kernels))
    assert activity(trace).compute_ns == 10_000


def test_one_step_alone_is_looked_at_whole(tmp_path: Path) -> None:
    events = [step(1, 0, 10), launch(1, 2, 1), kernel(15, 25, correlation=1)]
    assert activity(read_trace(write(tmp_path / "t.json", *events))).compute_ns == 10_000


def test_no_gpu_at_all(tmp_path: Path) -> None:
    assert activity(read_trace(write(tmp_path / "t.json"))) == Activity(0, 0, 0, 0, 0, 0, None)
