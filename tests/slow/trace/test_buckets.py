"""Every nanosecond of a step is in one bucket, and in the right one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slow.trace.traces import Event, copy, host, kernel, launch, mark, step, write
from train_ledger.slow.trace.breakdown import breakdown
from train_ledger.slow.trace.buckets import BUCKETS, Buckets, buckets_of, time_by_cause
from train_ledger.slow.trace.launching import launching
from train_ledger.slow.trace.reading.trace import read_trace
from train_ledger.slow.trace.steps import Window, windows

NCCL = "ncclDevKernel_AllReduce_Sum_bf16"


def of_one_step(tmp_path: Path, *events: Event) -> Buckets:
    """Everything launched within step 1, which lasts to the first kernel of step 2 at 1000 µs."""
    frame = [step(1, 0, 500), step(2, 500, 600), launch(510, 511, 999), kernel(1000, 1010, correlation=999)]
    [found] = breakdown([write(tmp_path / "t.json", *frame, *events)]).ranks[0].steps
    assert sum(value or 0 for value in found.buckets_ns.values()) == found.window_ns
    return found


def us(found: Buckets) -> dict[str, float | None]:
    return {
        name: None if value is None else value / 1000
        for name, value in found.buckets_ns.items()
        if value != 0
    }


def test_computation_hides_communication_and_the_rest_is_told_by_its_cause(tmp_path: Path) -> None:
    found = of_one_step(
        tmp_path,
        launch(1, 2, 1), kernel(10, 410, correlation=1),
        launch(3, 4, 2), kernel(300, 510, NCCL, 2),
        launch(400, 401, 3), kernel(510, 900, correlation=3),
    )  # fmt: skip
    assert found.window_ns == 990_000
    assert us(found)["compute"] == 790
    assert us(found)["comm_exposed"] == 100
    assert us(found)["other"] == 100, "the next step was launched long before: it was not the host"


def test_the_gpu_waits_for_the_host_and_the_host_for_data(tmp_path: Path) -> None:
    found = of_one_step(
        tmp_path,
        launch(0, 1, 1), kernel(10, 100, correlation=1),
        host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 90, 300),
        launch(310, 311, 2), kernel(320, 400, correlation=2),
        host("aten::item", 395, 440),
        launch(450, 451, 3), kernel(460, 1000, correlation=3),
    )  # fmt: skip
    assert us(found)["data_wait"] == 200
    assert us(found)["cpu_launch"] == 20 + 60
    assert found.host_parts_ns == {
        "checkpoint": 0, "gc": 0, "allocator": 0, "sync": 40_000, "dispatch": 40_000,
    }  # fmt: skip


def test_copies_of_a_batch_are_waiting_for_data_and_others_are_not(tmp_path: Path) -> None:
    found = of_one_step(
        tmp_path,
        mark("get_batch", 1, 20),
        launch(5, 6, 1, "cudaMemcpyAsync"), copy(10, 60, "Memcpy HtoD (Pinned -> Device)", 1),
        launch(30, 31, 2, "cudaMemcpyAsync"), copy(60, 80, "Memcpy DtoD (Device -> Device)", 2),
        launch(40, 41, 3), kernel(80, 1000, correlation=3),
    )  # fmt: skip
    assert us(found)["data_wait"] == 50
    assert us(found)["other"] == 20


def test_what_is_computed_again_for_the_backward_pass(tmp_path: Path) -> None:
    found = of_one_step(
        tmp_path,
        launch(1, 2, 1, tid=1), kernel(10, 100, correlation=1),
        host("autograd::engine::evaluate_function: CheckpointFunctionBackward", 20, 90, tid=2),
        host("CheckpointFunctionBackward", 21, 89, tid=2),
        launch(30, 31, 2, tid=2), kernel(100, 300, correlation=2),
        host("autograd::engine::evaluate_function: MmBackward0", 50, 80, tid=2),
        launch(60, 61, 3, tid=2), kernel(300, 1000, correlation=3),
    )  # fmt: skip
    assert us(found)["recompute"] == 200
    assert us(found)["compute"] == 90 + 700


def test_without_evidence_recomputation_is_not_known_and_stays_in_compute(tmp_path: Path) -> None:
    found = of_one_step(tmp_path, launch(1, 2, 1), kernel(10, 1000, correlation=1))
    assert found.buckets_ns["recompute"] is None
    with_frames = of_one_step(
        tmp_path,
        launch(1, 2, 1),
        kernel(10, 1000, correlation=1),
        host("train.py(9): step", 0, 9, cat="python_function"),
    )
    assert with_frames.buckets_ns["recompute"] == 0


def operator(name: str, start: float, end: float, number: int, forward_thread: int, tid: int = 2) -> Event:
    args = {"Sequence number": number, "Fwd thread id": forward_thread}
    return {**host(name, start, end, tid=tid), "args": args}


def test_what_is_computed_again_shows_in_sequence_numbers_without_any_frames(tmp_path: Path) -> None:
    events = [
        operator("aten::mm", 1, 9, 1, 0, tid=1), launch(2, 3, 1, tid=1), kernel(10, 100, correlation=1),
        operator("autograd::engine::evaluate_function: MmBackward0", 20, 90, 1, 1),
        operator("autograd::engine::evaluate_function: AddBackward0", 91, 92, 0, 1),
        operator("aten::mm", 25, 45, 5, 0), launch(30, 31, 2, tid=2), kernel(100, 300, correlation=2),
        launch(60, 61, 3, tid=2), kernel(300, 1000, correlation=3),
    ]  # fmt: skip
    found = of_one_step(tmp_path, *events)
    assert us(found)["recompute"] == 200
    without = [event for event in events if event.get("args", {}).get("Sequence number") != 5]
    assert of_one_step(tmp_path, *without).buckets_ns["recompute"] == 0
    compiled = host("CompiledFunctionBackward", 300, 400, tid=2)
    compiled["name"] = "autograd::engine::evaluate_function: CompiledFunctionBackward"
    assert of_one_step(tmp_path, *without, compiled).buckets_ns["recompute"] is None


def test_gradients_of_gradients_are_not_computed_again(tmp_path: Path) -> None:
    events = [
        operator("autograd::engine::evaluate_function: MmBackward0", 20, 90, 1, 1),
        operator("aten::mm", 25, 45, 5, 0), launch(30, 31, 2, tid=2), kernel(100, 1000, correlation=2),
    ]  # fmt: skip
    assert of_one_step(tmp_path, *events).buckets_ns["recompute"] == 0


def test_idle_time_after_the_launch_waits_for_another_stream_or_is_not_explained(tmp_path: Path) -> None:
    def wait(at: float) -> Event:
        event = kernel(at, at, "Stream Wait Event", stream=9)
        return {**event, "cat": "cuda_sync"}

    events = [
        launch(1, 2, 1), kernel(10, 100, correlation=1),
        launch(3, 4, 2), kernel(130, 300, correlation=2, stream=9),
        wait(12), launch(5, 6, 3), kernel(305, 500, correlation=3, stream=9),
        launch(7, 8, 4), kernel(600, 1000, correlation=4, stream=9),
    ]  # fmt: skip
    found = of_one_step(tmp_path, *events)
    assert found.other_parts_ns == {
        "copies": 0, "dependency": 30_000, "kernel_gaps": 5_000, "graph": 0, "unexplained": 100_000,
    }  # fmt: skip
    assert found.buckets_ns["other"] == 135_000


def test_idle_time_before_a_node_of_a_graph_is_the_graphs(tmp_path: Path) -> None:
    found = of_one_step(
        tmp_path,
        launch(1, 2, 1), kernel(10, 100, correlation=1),
        launch(3, 4, 2, "cudaGraphLaunch"), kernel(400, 500, correlation=2), kernel(800, 1000, correlation=2),
    )  # fmt: skip
    assert (found.other_parts_ns["graph"], found.other_parts_ns["unexplained"]) == (600_000, 0)


def test_a_slow_launch_is_no_dependency(tmp_path: Path) -> None:
    events = [
        launch(1, 2, 1),
        kernel(5, 100, correlation=1),
        launch(110, 111, 2),
        kernel(150, 1000, correlation=2),
    ]
    found = of_one_step(tmp_path, *events)
    assert (found.buckets_ns["cpu_launch"], found.other_parts_ns["dependency"]) == (14_000, 0)


def test_receives_that_wait_for_another_stage_are_the_bubble(tmp_path: Path) -> None:
    arguments = {"Collective name": "recv", "Process Group Name": "pp", "In msg nelems": 64}
    received = [
        event
        for number, (start, end) in enumerate([(10, 110), (200, 210), (300, 310)])
        for event in (
            launch(start - 9, start - 8, number),
            kernel(start, end, "ncclDevKernel_SendRecv", number, **arguments),
        )
    ]
    found = of_one_step(tmp_path, *received)
    assert us(found)["bubble"] == 90
    assert us(found)["comm_exposed"] == 30


def test_rings_within_a_stage_are_no_bubble(tmp_path: Path) -> None:
    arguments = {"Collective name": "recv", "Process Group Description": "mesh_cp", "In msg nelems": 64}
    received = [
        event
        for number, (start, end) in enumerate([(10, 110), (200, 210)])
        for event in (
            launch(start - 9, start - 8, number + 1),
            kernel(start, end, "ncclDevKernel_SendRecv", number + 1, **arguments),
        )
    ]
    assert of_one_step(tmp_path, *received).buckets_ns["bubble"] == 0


def test_a_host_that_receives_for_its_gpu_waits_for_another_stage(tmp_path: Path) -> None:
    found = of_one_step(
        tmp_path,
        launch(1, 2, 1), kernel(10, 100, correlation=1),
        mark("recv_forward", 105, 400),
        launch(410, 411, 2), kernel(419, 1000, correlation=2),
    )  # fmt: skip
    assert us(found)["bubble"] == 295


def test_a_step_is_cut_by_its_launches_and_not_by_the_marks_of_the_host(tmp_path: Path) -> None:
    events = [
        step(15, 0, 10), launch(1, 2, 1), kernel(15, 25, correlation=1),
        step(16, 10, 20), launch(11, 12, 2), kernel(40, 50, correlation=2),
        step(17, 20, 30), launch(21, 22, 3), kernel(60, 70, correlation=3),
    ]  # fmt: skip
    trace = read_trace(write(tmp_path / "t.json", *events))
    launched = launching(trace)
    assert windows(trace, launched).windows == (Window(15, 15_000, 40_000), Window(16, 40_000, 60_000))
    assert windows(trace, launched, with_last=True).windows[-1] == Window(17, 60_000, 70_000)


def test_one_launch_of_a_graph_launches_many_kernels(tmp_path: Path) -> None:
    graph = [kernel(10 * number, 10 * number + 10, correlation=9) for number in range(1, 6)]
    found = of_one_step(tmp_path, launch(1, 2, 9, "cudaGraphLaunch"), *graph)
    assert us(found)["compute"] == 50


@pytest.mark.parametrize(
    ("marks", "remark", "count"),
    [
        ([], "no steps are marked, so the whole trace is one window", 1),
        (
            [mark("Optimizer.step#AdamW.step", 40, 50), mark("Optimizer.step#AdamW.step", 90, 95)],
            "ends with a step of the optimizer",
            1,
        ),
    ],
)
def test_traces_without_step_marks(tmp_path: Path, marks: list[Event], remark: str, count: int) -> None:
    events = [
        launch(1, 2, 1),
        kernel(10, 20, correlation=1),
        launch(60, 61, 2),
        kernel(70, 80, correlation=2),
    ]
    found = breakdown([write(tmp_path / "t.json", *events, *marks)])
    assert len(found.ranks[0].steps) == count
    assert any(remark in it.why for it in found.degraded)


spans = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 90)), min_size=1, max_size=10)


@settings(deadline=None)  # it writes files
@given(
    compute=spans,
    comm=spans,
    copies=spans,
    data=spans,
    starts=st.lists(st.integers(0, 300), min_size=1, max_size=9),
)
def test_the_buckets_sum_to_the_window_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory,
    compute: list[tuple[int, int]],
    comm: list[tuple[int, int]],
    copies: list[tuple[int, int]],
    data: list[tuple[int, int]],
    starts: list[int],
) -> None:
    events = [launch(start, start + 1, number) for number, start in enumerate(starts)]
    for number, (kind, made) in enumerate([(kernel, compute), (kernel, comm), (copy, copies)]):
        name = ("gemm", NCCL, "Memcpy HtoD (Pageable -> Device)")[number]
        events += [
            kind(start, start + length, name, place % len(starts))
            for place, (start, length) in enumerate(made)
        ]
    events += [host("DataLoader.__next__", start, start + length) for start, length in data]
    trace = read_trace(write(tmp_path_factory.mktemp("law") / "t.json", *events))
    first, last = int(trace.gpu.start.min()), int(trace.gpu.end.max())
    times = time_by_cause(trace)
    middle = (first + last) // 2
    halves = [buckets_of(times, Window(0, first, middle)), buckets_of(times, Window(1, middle, last))]
    whole = buckets_of(times, Window(None, first, last))
    for name in BUCKETS:
        parts = [half.buckets_ns[name] for half in halves]
        assert whole.buckets_ns[name] == (None if None in parts else sum(parts))
    assert sum(value or 0 for value in whole.buckets_ns.values()) == last - first
    assert all(value is None or value >= 0 for value in whole.buckets_ns.values())
    assert sum(whole.host_parts_ns.values()) == whole.buckets_ns["cpu_launch"]
