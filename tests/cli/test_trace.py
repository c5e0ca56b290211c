"""`train-ledger trace breakdown` and `trace diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slow.trace.test_arrivals import calls
from slow.trace.traces import kernel, launch, step, write
from train_ledger.cli import app


def invoke(*arguments: object) -> tuple[int, str, str]:
    answer = CliRunner().invoke(app, ["trace", *map(str, arguments)])
    return answer.exit_code, answer.stdout, answer.stderr


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    events = []
    for number in range(7):
        begin = 100.0 * number
        events += [step(number, begin, begin + 100), launch(begin + 1, begin + 2, number)]
        events.append(kernel(begin + 10, begin + 70 + number % 2, correlation=number))
    return write(tmp_path / "rank0.json", *events)


def test_breakdown_of_a_rank(trace: Path) -> None:
    status, out, _ = invoke("breakdown", trace, "--json")
    answer = json.loads(out)
    assert (status, answer["schema"]) == (0, 1)
    rank = answer["ranks"]["0"]
    assert [it["step"] for it in rank["steps"]] == [0, 1, 2, 3, 4, 5]
    assert rank["held_by"] == {"recompute": "compute", "kernel_eff": "compute", "straggler": "comm_exposed"}
    for it in (*rank["steps"], rank["total"]):
        assert sum(value or 0 for value in it["buckets_ns"].values()) == it["window_ns"]
    assert set(rank["activity"]) == {
        "span_ns", "compute_ns", "comm_ns", "comm_exposed_ns", "memory_ns", "idle_ns", "overlap_percent",
    }  # fmt: skip


def test_breakdown_for_people_names_who_came_late(tmp_path: Path) -> None:
    for rank, late in enumerate([0.0, 200.0, 0.0]):
        write(tmp_path / f"rank{rank}.json", *calls([late] * 5), rank=None)
    status, out, _ = invoke("breakdown", tmp_path)
    assert status == 0
    assert "rank 1 made the others wait most: in all 1.000 ms later" in out
    assert out.splitlines()[0].split() == ["mean", "step", "rank", "0", "rank", "1", "rank", "2"]


def test_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"traceEvents": [')
    status, out, _ = invoke("breakdown", tmp_path / "t.json")
    assert status == 3
    assert "nothing of a GPU was recorded" in out


def test_difference(trace: Path, tmp_path: Path) -> None:
    status, out, _ = invoke("diff", trace, trace, "--json")
    answer = json.loads(out)
    assert (status, answer["window_ns"]["diff"]) == (0, 0)
    assert answer["conclusion"] == "the step did not change by more than steps differ anyway"
    assert len(answer["buckets_ns"]["compute"]["ci95"]) == 2
    assert answer["buckets_ns"]["recompute"] is None
    status, out, _ = invoke("diff", trace, trace)
    assert out.splitlines()[0].split() == ["mean", "step", "old", "new", "difference", "95", "of", "100"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["breakdown", "{tmp}/nowhere.json"], "No such file"),
        (["breakdown", "{tmp}"], "has no trace"),
        (["breakdown", "{trace}", "{trace}"], "both are of rank 0"),
        (["breakdown", "{trace}", "--collectives", "("], "is no pattern"),
        (["diff", "{trace}", "{empty}"], "no step on a GPU"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, trace: Path, arguments: list[str], why: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder").mkdir()
    empty = write(tmp_path / "folder" / "none.json")
    places = {"tmp": tmp_path / "empty", "trace": trace, "empty": empty}
    status, _, err = invoke(*(argument.format(**places) for argument in arguments))
    assert status == 2
    assert why in err
    assert "Traceback" not in err
