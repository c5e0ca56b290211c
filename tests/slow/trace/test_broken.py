"""What is known to be wrong with traces in the wild, each as a small trace of its own."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import pytest

from slow.trace.traces import Event, copy, host, kernel, launch, mark, step, write
from train_ledger.slow.trace.activity import activity
from train_ledger.slow.trace.breakdown import Breakdown, breakdown
from train_ledger.slow.trace.reading import trace as reading
from train_ledger.slow.trace.reading.trace import Trace, read_trace


def of(path: Path, text: str) -> Trace:
    path.write_text(text)
    return read_trace(path)


def broken_down(tmp_path: Path, *events: Event, **more: object) -> Breakdown:
    return breakdown([write(tmp_path / "t.json", *events, **more)])  # type: ignore[arg-type]


def remarks(found: Breakdown) -> str:
    return "\n".join(it.why for it in found.degraded)


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
        "NCCLKERNEL_ALLREDUCE",
        "ncclSymkDevKernel_AG",
    ],
)
def test_communication_whatever_its_kernels_are_called(tmp_path: Path, name: str) -> None:
    found = activity(read_trace(write(tmp_path / "t.json", kernel(0, 100), kernel(50, 200, name))))
    assert found.overlap_percent == pytest.approx(100 / 3)
    assert found.comm_exposed_ns == 100_000


def test_communication_that_is_not_seen_is_said_and_its_overlap_is_not_zero(tmp_path: Path) -> None:
    found = broken_down(tmp_path, kernel(0, 100), kernel(50, 200, "ring_exchange"), world_size=8)
    assert found.ranks[0].activity.overlap_percent is None
    assert "its job has 8 ranks, but no communication is seen" in remarks(found)
    assert "no communication" not in remarks(broken_down(tmp_path, kernel(0, 100), world_size=1))


def test_a_bandwidth_of_inf_is_told_with_its_place(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": [kernel(0, 1), copy(2, 2)]})
    text = text.replace('"dur": 0', '"dur": 0, "memory bandwidth (GB/s)": inf')
    trace = of(tmp_path / "t.json", text)
    assert len(trace.gpu) == 2
    [words] = trace.losses.in_words()
    assert int(words.partition("near byte ")[2].strip(")")) == pytest.approx(text.index("inf"), abs=30)


@pytest.mark.parametrize("value", ["18446744073709551615", "340282366920938463463374607431768211455", "-0.0"])
def test_numbers_that_no_machine_word_holds(tmp_path: Path, value: str) -> None:
    event = {**kernel(0, 1), "args": {"Comms Id": "NUMBER", "correlation": "NUMBER", "stream": "NUMBER"}}
    trace = of(tmp_path / "t.json", json.dumps({"traceEvents": [event]}).replace('"NUMBER"', value))
    assert len(trace.gpu) == 1
    assert trace.losses.events == 0


@pytest.mark.parametrize("unit", ["ms", "ns", None])
def test_the_unit_that_is_displayed_is_not_that_of_the_times(tmp_path: Path, unit: str | None) -> None:
    more = {} if unit is None else {"displayTimeUnit": unit}
    text = write(tmp_path / "t.json", {**kernel(0, 2), "ts": "TS"}, **more).read_text()
    trace = of(tmp_path / "t.json", text.replace('"TS"', "1744000000000000.123"))
    assert trace.gpu.start.tolist() == [1_744_000_000_000_000_123]
    assert (trace.gpu.end - trace.gpu.start).tolist() == [2000]


def test_a_base_that_all_times_count_from_is_part_of_the_wall_clock(tmp_path: Path) -> None:
    trace = read_trace(
        write(tmp_path / "t.json", kernel(1, 2), baseTimeNanoseconds=1_727_000_000_000_000_000)
    )
    assert trace.base_ns == 1_727_000_000_000_000_000
    assert trace.gpu.start.tolist() == [1000]


def test_strings_as_times(tmp_path: Path) -> None:
    event = {**kernel(0, 1), "ts": "1718180918996921.780", "dur": "1e1"}
    trace = read_trace(write(tmp_path / "t.json", event))
    assert trace.gpu.start.tolist() == [1_718_180_918_996_921_780]
    assert (trace.gpu.end - trace.gpu.start).tolist() == [10_000]


def test_equal_bursts_without_marks_are_one_window_that_is_called_so(tmp_path: Path) -> None:
    bursts = [
        kernel(10_000 * burst + 10 * it, 10_000 * burst + 10 * it + 9)
        for burst in range(4)
        for it in range(5)
    ]
    found = broken_down(tmp_path, *bursts)
    assert len(found.ranks[0].steps) == 1
    assert "no steps are marked, so the whole trace is one window" in remarks(found)


def test_kernels_at_time_0_before_their_launch_and_dropped(tmp_path: Path) -> None:
    launches = [launch(100 + number, 101 + number, number + 1) for number in range(10)]
    kernels = [kernel(120 + number, 121 + number, correlation=number + 1) for number in range(1, 7)]
    odd = [{**kernel(0, 0), "ts": 0, "dur": 0}, kernel(98, 99, correlation=1)]
    found = broken_down(tmp_path, *launches, *kernels, *odd)
    assert "3 of 10 launches (30%) have no kernel" in remarks(found)
    assert "at time 0" in remarks(found)
    assert "1 activities begin before their launch" in remarks(found)
    assert found.ranks[0].activity.compute_ns == 7000


def test_an_activity_days_away_does_not_make_days_of_idle_time(tmp_path: Path) -> None:
    now = 1_744_000_000_000_000
    found = broken_down(tmp_path, kernel(0, 5), kernel(now, now + 9), kernel(now + 9, now + 10))
    assert found.ranks[0].activity.span_ns == 10_000
    assert "days away" in remarks(found)
    found = broken_down(
        tmp_path, kernel(now, now + 9), kernel(now + 3, now + 5e12), kernel(now + 9, now + 10)
    )
    assert found.ranks[0].activity.span_ns == 10_000, "nor one that lasts for as long"
    assert "days away" in remarks(found)


def test_a_time_that_no_number_holds_is_none(tmp_path: Path) -> None:
    odd = [{**event, "ts": 8e15, "dur": 8e15} for event in (kernel(0, 1), launch(0, 1, 1), step(1, 0, 1))]
    found = broken_down(tmp_path, *odd, kernel(0, 5))
    assert found.ranks[0].activity.span_ns == 5000
    assert "3 × an activity without a time" in remarks(found)


def test_a_graph_is_launched_once_and_runs_many_kernels(tmp_path: Path) -> None:
    graph = [kernel(10 * it, 10 * it + 5, correlation=9) for it in range(1, 6)]
    for name in ("cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"):
        found = broken_down(tmp_path, launch(1, 2, 9, name), *graph)
        assert found.ranks[0].activity.compute_ns == 25_000
        assert "have no kernel" not in remarks(found)
    assert "1 of 1 launches (100%)" in remarks(broken_down(tmp_path, launch(1, 2, 8, name), *graph))


def test_a_graph_of_which_little_was_recorded_may_have_computed(tmp_path: Path) -> None:
    nodes = [kernel(500, 510, correlation=9), kernel(510, 520, correlation=9)]
    found = broken_down(tmp_path, launch(1, 2, 8), kernel(5, 100, correlation=8), launch(3, 4, 9), *nodes)
    assert "in 78% of the time a graph had been launched and nothing of it is recorded" in remarks(found)


def test_activities_that_took_no_time_are_no_step(tmp_path: Path) -> None:
    found = broken_down(tmp_path, kernel(5, 5))
    assert found.ranks[0].steps == ()
    assert "took no time" in remarks(found)


def test_a_process_of_several_gpus(tmp_path: Path) -> None:
    other = {**kernel(50, 200), "pid": 1}
    found = broken_down(tmp_path, kernel(0, 100), other)
    assert found.ranks[0].activity.compute_ns == 200_000
    assert "its process drives 2 GPUs: what any one of them does counts for all" in remarks(found)


def test_a_correlation_of_0_that_everything_carries_joins_nothing(tmp_path: Path) -> None:
    frame = [step(1, 0, 50), step(2, 50, 90)]
    unknown = [launch(1, 2, 0), launch(60, 61, 0), kernel(5, 9, correlation=0), kernel(70, 80, correlation=0)]
    found = broken_down(tmp_path, *frame, *unknown)
    assert "no launch was recorded within a step" in remarks(found)


def test_activities_that_name_only_the_operator_of_their_launch(tmp_path: Path) -> None:
    def by_operator(event: Event, number: int) -> Event:
        return {**event, "args": {"External id": number}}

    events = [
        by_operator(launch(1, 2, 0), 5),
        by_operator(kernel(20, 30), 5),
        by_operator(launch(12, 13, 0), 6),
    ]
    events += [by_operator(kernel(40, 50), 6), step(1, 0, 10), step(2, 10, 20)]
    [window] = broken_down(tmp_path, *events).ranks[0].windows
    assert (window.start, window.end) == (20_000, 40_000)


def test_amd_gpus_and_custom_collectives(tmp_path: Path) -> None:
    told = {"Collective name": "allreduce"}
    events = [
        step(1, 0, 10), launch(1, 2, 1, "hipLaunchKernel"), kernel(15, 25, "Cijk_Ailk_Bljk_BBS", 1),
        launch(2, 3, 2, "hipExtModuleLaunchKernel"), kernel(25, 35, "Generic", 2, **told),
        launch(3, 4, 3, "hipLaunchKernel"), kernel(35, 45, "void cross_device_reduce_1stage<bf16, 8>", 3),
        step(2, 10, 20), launch(11, 12, 4, "hipLaunchKernel"), kernel(45, 55, correlation=4),
    ]  # fmt: skip
    for event in events:
        event["cat"] = event["cat"].replace("cuda_runtime", "hip_runtime")
    [found] = broken_down(tmp_path, *events).ranks[0].steps
    assert (found.buckets_ns["compute"], found.buckets_ns["comm_exposed"]) == (10_000, 20_000)


def test_old_categories_with_the_step_among_the_operators(tmp_path: Path) -> None:
    events = [
        step(1, 0, 10), launch(1, 2, 1), kernel(15, 25, correlation=1), step(2, 10, 20), launch(11, 12, 2),
        kernel(40, 50, correlation=2), mark("my_loop", 3, 4),
    ]  # fmt: skip
    names = {"user_annotation": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel"}
    old = [{**event, "cat": names[event["cat"]]} for event in events]
    path = write(tmp_path / "t.json", *old)
    [window] = breakdown([path]).ranks[0].windows
    assert (window.step, window.start, window.end) == (1, 15_000, 40_000)
    assert len(read_trace(path, annotation="my_loop").marks) == 1


def test_collectives_in_a_category_of_their_own(tmp_path: Path) -> None:
    event = {**kernel(0, 10, "anything"), "cat": "collective_comm"}
    assert activity(read_trace(write(tmp_path / "t.json", event))).comm_ns == 10_000


@pytest.mark.parametrize("field", ["pid", "tid", "cat", "name", "ph", "args", "ts", "dur"])
@pytest.mark.parametrize("value", [None, [1], {"a": 1}, 7, "x", True])
def test_events_of_any_shape(tmp_path: Path, field: str, value: object) -> None:
    odd = [
        {**event, field: value} for event in (kernel(0, 1), launch(0, 1, 1), host("x", 0, 1), step(1, 0, 1))
    ]
    trace = read_trace(write(tmp_path / "t.json", *odd, kernel(5, 6)))
    assert 5000 in trace.gpu.start.tolist()


@pytest.mark.parametrize("damaged", ['{"ph: "X"', '{"p"h": "X"', '{ph": "X"', '{"ph": "X""'])
def test_an_event_whose_beginning_is_damaged_is_counted(tmp_path: Path, damaged: str) -> None:
    head, middle, end = json.dumps([kernel(0, 1), kernel(2, 3), kernel(4, 5)]).split('{"ph": "X"')[1:]
    events = f'{{"ph": "X"{head}{damaged}{middle}{{"ph": "X"{end}'
    text = f'{{"traceEvents": [{events}, "distributedInfo": {{"rank": 3}}}}'
    trace = of(tmp_path / "t.json", text)
    assert (len(trace.gpu), trace.losses.events, trace.rank) == (2, 1, 3)
    assert "ends in the middle" not in " ".join(trace.losses.in_words())


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"ph": ""}, "an event without a phase"),
        ({"cat": ""}, "an activity without a category"),
        ({"ph": "B"}, "an activity of phase 'B'"),
    ],
)
def test_activities_of_which_it_is_not_told_what_they_are(
    tmp_path: Path, changed: dict[str, str], why: str
) -> None:
    trace = read_trace(write(tmp_path / "t.json", kernel(0, 1), {**kernel(2, 3), **changed}))
    assert (len(trace.gpu), trace.losses.events) == (1, 1)
    assert why in " ".join(trace.losses.in_words())


@pytest.mark.parametrize("filler", [" ", '"', '{"ph"', "\x00"])
def test_what_never_ends_is_given_up_soon(tmp_path: Path, filler: str) -> None:
    path = tmp_path / "t.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents": [' + (filler * ((24 << 20) // len(filler))).encode())
    begin = time.process_time()
    trace = read_trace(path)
    assert "MiB without the end of an event" in " ".join(trace.losses.in_words())
    assert time.process_time() - begin < 10, "was minutes, growing with the square of the length"


def test_a_file_of_something_else_is_called_so_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    trace = of(tmp_path / "t.json", "SQLite format 3")
    assert trace.losses.in_words() == ("no list of events in it: this is no trace of torch's profiler",)
    assert not trace.is_trace
    assert not of(tmp_path / "t.json", "[1, 2, 3]\n").is_trace, "a list, but of no events"
    assert of(tmp_path / "t.json", '{"traceEvents": []}').is_trace, "one in which nothing happened"
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(OSError, match="is no file"):
        read_trace(tmp_path / "pipe.json")


def test_a_byte_order_mark_hides_neither_a_list_nor_the_rank(tmp_path: Path) -> None:
    text = write(tmp_path / "t.json", kernel(0, 5), rank=3).read_text()
    for whole, rank in ((text, 3), (json.dumps([kernel(0, 5)]), None)):
        (tmp_path / "t.json").write_text(whole, encoding="utf-8-sig")
        trace = read_trace(tmp_path / "t.json")
        assert (len(trace.gpu), trace.rank, trace.losses.in_words()) == (1, rank, ())


def test_syncs_for_a_log_line_are_the_hosts(tmp_path: Path) -> None:
    events: list[Event] = []
    for number in range(3):
        begin, one, other = 100 * number, 2 * number + 1, 2 * number + 2
        events += [
            step(number, begin, begin + 100),
            launch(begin + 1, begin + 2, one), kernel(begin + 5, begin + 45, correlation=one),
            host("aten::item", begin + 3, begin + 80),
            launch(begin + 4, begin + 79, 999 + number, "cudaStreamSynchronize"),
            launch(begin + 85, begin + 86, other), kernel(begin + 89, begin + 105, correlation=other),
        ]  # fmt: skip
    found = broken_down(tmp_path, *events).ranks[0].steps[0]
    assert found.host_parts_ns["sync"] == 35_000
    assert found.host_parts_ns["dispatch"] == (4 + 5) * 1000


def test_who_dragged_is_told_by_all_ranks_where_the_backward_pass_takes_equally_long(tmp_path: Path) -> None:
    paths = []
    for rank, compute_us in enumerate([90, 290, 90, 90]):
        events: list[Event] = []
        for number in range(4):
            begin, end, one = 1000 * number, 1000 * number + 293, 10 * number + 1
            told = {"Collective name": "allreduce", "Process Group Name": "0", "Seq": number}
            events += [
                step(number, begin, begin + 999),
                launch(begin, begin + 1, one), kernel(begin, begin + compute_us, "gemm", one),
                launch(begin + 1, begin + 2, one + 1),
                kernel(begin + compute_us, end, "ncclDevKernel", one + 1, **told),
            ]  # fmt: skip
        paths.append(write(tmp_path / f"rank{rank}.json", *events, rank=rank, world_size=4))
    found = breakdown(paths)
    assert found.latecomer == 1
    waits = [it.steps[0].buckets_ns["straggler"] for it in found.ranks.values()]
    assert waits == [200_000, 0, 200_000, 200_000]


def test_names_without_end_are_not_all_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "<built-in method item of Tensor object at 0x{:x}>"
    calls = [host(name.format(number), number, number + 1, cat="python_function") for number in range(50)]
    events = [*calls, host("aten::item", 60, 70), step(1, 0, 80), kernel(5, 9)]
    path = write(tmp_path / "t.json", *events)
    whole = read_trace(path)
    monkeypatch.setattr(reading, "_MOST_REMEMBERED", 3)
    again = read_trace(path)
    assert again.host.start.tolist() == whole.host.start.tolist() == [60_000]
    assert again.steps == whole.steps


@pytest.mark.slow
def test_a_trace_of_hundreds_of_megabytes_in_little_memory(tmp_path: Path) -> None:
    import subprocess
    import sys

    event = json.dumps(
        {**host("torch/nn/modules/module.py(1501): _call_impl", 1, 2, cat="python_function"),
         "args": {"Python id": 1, "Python parent id": None, "Python module id": 7}}
    )  # fmt: skip
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write('{"traceEvents": [')
        for _ in range(3000):
            file.write((event + ",\n") * 500)
        file.write(json.dumps(kernel(0, 1)) + "]}")
    assert path.stat().st_size > 300_000_000
    code = (
        "import re, sys; from pathlib import Path;"
        "from train_ledger.slow.trace.reading.trace import read_trace;"
        "found = len(read_trace(Path(sys.argv[1])).gpu);"
        # not by getrusage, which counts what the process that started this one held
        "print(found, re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert told[0] == "1"
    assert int(told[1]) < 500_000


def test_steps_without_time_of_their_own_are_told(tmp_path: Path) -> None:
    """Behind one of them another stream did earlier what was launched later; one is of the host alone."""
    events: list[Event] = []
    for number, start in enumerate((100, 300, 200, 500, None, 700, 800)):
        at = 10.0 * number
        events.append(step(number, at, at + 9))
        if start is not None:
            events += [launch(at + 1, at + 2, number + 1), kernel(start, start + 50, correlation=number + 1)]
    found = broken_down(tmp_path, *events)
    assert [it.step for it in found.ranks[0].steps] == [0, 2, 3, 5]
    assert "2 of 7 marked steps have no time of their own on the GPU: neighbours have it" in remarks(found)


def test_of_a_packed_file_that_is_cut_what_stands_before_the_cut_is_read(tmp_path: Path) -> None:
    events = [kernel(10 * it, 10 * it + 5, f"gemm_{it * 7919 % 1000}") for it in range(200)]
    packed = gzip.compress(write(tmp_path / "t.json", *events).read_bytes())
    (tmp_path / "t.json.gz").write_bytes(packed[: len(packed) * 3 // 4])
    trace = read_trace(tmp_path / "t.json.gz")
    assert len(trace.gpu) > 100
    said = " ".join(trace.losses.in_words())
    assert said.count("the packed file is damaged or cut") == 1
    assert "2 ×" not in said
