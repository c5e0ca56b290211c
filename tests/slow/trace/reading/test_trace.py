"""What can be read of a trace is read, and what is lost is said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slow.trace.traces import host, kernel, launch, mark, step, write
from train_ledger.slow.trace.reading import pieces as pieces_module
from train_ledger.slow.trace.reading.names import Doing, GpuClass
from train_ledger.slow.trace.reading.trace import Collective, Trace, read_trace

THREE = [kernel(0, 1), kernel(2, 3), kernel(4, 5)]


def of(path: Path, text: str | bytes) -> Trace:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(path)


def test_a_trace_by_its_parts(tmp_path: Path) -> None:
    events = [
        step(7, 0, 50),
        launch(1, 3, 11),
        kernel(
            10, 20, "ncclDevKernel_Generic", 11, **{"Collective name": "allreduce", "Process Group Name": "0"}
        ),
        host("aten::item", 5, 9),
        host("aten::mm", 5, 9),
        mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 30, 40),
    ]
    trace = read_trace(write(tmp_path / "t.json", *events, rank=3, world_size=8))
    assert (trace.rank, trace.world_size, trace.steps) == (3, 8, ((7, 0, 50_000),))
    assert trace.gpu.kind.tolist() == [GpuClass.COMMUNICATION]
    assert trace.gpu.correlation.tolist() == trace.launches.correlation.tolist() == [11]
    assert trace.collectives == {0: Collective("allreduce", "0", None, "")}
    assert [Doing(kind).name for kind in trace.host.kind] == ["SYNC", "DATA"]
    assert trace.losses.in_words() == ()


def test_packed_or_a_list_alone_or_of_old_names(tmp_path: Path) -> None:
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(json.dumps({"traceEvents": THREE}).encode()))
    assert len(read_trace(packed).gpu) == 3
    old = [{**event, "cat": "Kernel"} for event in THREE]
    assert len(of(tmp_path / "list.json", json.dumps(old)).gpu) == 3
    assert read_trace(tmp_path / "list.json").rank is None


def test_times_as_strings_and_with_more_digits_than_a_float_has(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": [{**kernel(0, 1), "ts": "TS", "dur": "0.5"}]})
    trace = of(tmp_path / "t.json", text.replace('"TS"', "1712195495520883.197"))
    assert trace.gpu.start.tolist() == [1_712_195_495_520_883_197]
    assert (trace.gpu.end - trace.gpu.start).tolist() == [500]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"dur": 1', '"dur": 1, "x": inf', "a number that is inf or nan"),
        ('"dur": 1', '"dur": 1, "x": -NaN', "a number that is inf or nan"),
        ('"gemm"', '"ge\x01mm"', "a control character"),
        ('"gemm"', r'"C:\gemm"', "a bad escape"),
        ('"gemm"', '"ge\nmm"', "a line break in a name"),
    ],
)
def test_what_profilers_write_wrongly_is_put_right(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    trace = of(tmp_path / "t.json", json.dumps({"traceEvents": THREE}).replace(before, after, 1))
    assert len(trace.gpu) == 3
    [words] = trace.losses.in_words()
    assert words.startswith(f"{said} (first near byte ")
    assert trace.losses.events == 0


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": THREE}).encode().replace(b"gemm", b"ge\xffmm", 1)
    trace = of(tmp_path / "t.json", text)
    assert len(trace.gpu) == 3
    at = text.index(b"\xff")
    assert trace.losses.in_words() == (f"bytes that are no UTF-8 (first near byte {at:,})",)


def test_a_name_with_a_quote_in_it_costs_its_own_event(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": THREE}).replace('"gemm"', '"ge"mm"', 1)
    trace = of(tmp_path / "t.json", text)
    assert trace.gpu.start.tolist() == [2000, 4000]
    assert trace.losses.events == 1


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": THREE})
    trace = of(tmp_path / "t.json", text[: text.rindex('"name"')])
    assert len(trace.gpu) == 2
    assert "the file ends in the middle of the list of events" in trace.losses.in_words()
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(json.dumps({"traceEvents": THREE * 400}).encode())[:-60])
    cut = read_trace(packed)
    assert any("packed file" in said for said in cut.losses.in_words())


def test_activities_that_are_none_are_counted(tmp_path: Path) -> None:
    odd = [{**kernel(0, 0), "ts": 0}, {**kernel(5, 6), "dur": -1}, {**kernel(5, 6), "ts": None}, kernel(7, 8)]
    trace = read_trace(write(tmp_path / "t.json", *odd))
    assert trace.gpu.start.tolist() == [7000]
    assert trace.losses.events == 3


def test_what_the_host_does_is_not_of_the_gpu_whatever_stream_it_names(tmp_path: Path) -> None:
    event = {**host("triton_poi_fused_add", 0, 9), "args": {"stream": 0}}
    assert len(read_trace(write(tmp_path / "t.json", event)).gpu) == 0


@pytest.mark.parametrize(
    "text", ["", "{}", "null", "not json", '{"traceEvents": 5}', "[" * 5000, "\x00" * 100]
)
def test_what_is_no_trace_at_all(tmp_path: Path, text: str) -> None:
    trace = of(tmp_path / "t.json", text)
    assert len(trace.gpu) == 0


@given(size=st.integers(40, 400), data=st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_the_size_of_the_pieces_changes_nothing(size: int, data: list[int]) -> None:
    import io

    from train_ledger.slow.trace.reading.loss import Losses

    tricky = {"deep": [{"ph": "a}, {"}, {"name": "]"}], "text": 'x"}, {"ph": "X"'}
    events = [{**kernel(start, start + 1), "args": {"more": tricky}} for start in data]
    text = json.dumps({"a": "]", "traceEvents": events, "z": {"distributedInfo": 1}}).encode()
    read_bytes, losses = pieces_module._READ_BYTES, Losses()
    pieces_module._READ_BYTES = size
    try:
        found = [
            int(bytes(event.ts))
            for events in pieces_module.Pieces(io.BytesIO(text), losses)
            for event in events
        ]
    finally:
        pieces_module._READ_BYTES = read_bytes
    assert found == data
