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


def test_of_a_run_the_newest_taking_is_broken_down_and_the_others_are_named(
    trace: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    for name in ("taken-20-ab", "scheduled-10"):
        (run / "traces" / name).mkdir(parents=True)
        (run / "traces" / name / "rank_0.json").write_bytes(trace.read_bytes())
    (run / "run.json").write_text("{}")
    (run / "traces" / "taken-20-ab" / ".unfinished.rank_0.json").write_text("{")
    for folder in (run, run / "traces"):
        status, out, _ = invoke("breakdown", folder)
        assert status == 0
        assert "taken-20-ab is the newest of 2 takings in it; name another to see it: scheduled-10" in out
        assert "several traces of a rank" not in out, "a part that a killed rank left is none"


def test_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"traceEvents": [')
    status, out, _ = invoke("breakdown", tmp_path / "t.json")
    assert status == 3
    assert "nothing of a GPU was recorded" in out
    assert "mean step" not in out, "a table of dashes says nothing"


def test_a_file_of_something_else_in_a_folder_of_traces_is_no_rank(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "trace.json").write_bytes(trace.read_bytes())
    (tmp_path / "traces" / "notes.json").write_text('{"lr": 3e-4}')
    status, out, _ = invoke("breakdown", tmp_path / "traces", "--json")
    answer = json.loads(out)
    assert (status, list(answer["ranks"])) == (0, ["0"])
    told = [Path(it["file"]).name for it in answer["degraded"] if "no list" in it["why"]]
    assert told == ["notes.json"]


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
        (["breakdown", "{notes}"], "notes.json: no list of events in it"),
        (["breakdown", "{notes}", "{notes}"], "and 1 more such files"),
        (["diff", "{trace}", "{notes}"], "notes.json: no list of events in it"),
        (["diff", "{trace}", "{empty}"], "no step on a GPU"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, trace: Path, arguments: list[str], why: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder").mkdir()
    empty = write(tmp_path / "folder" / "none.json")
    (tmp_path / "notes.json").write_text('{"lr": 3e-4}')
    places = {"tmp": tmp_path / "empty", "trace": trace, "empty": empty, "notes": tmp_path / "notes.json"}
    status, _, err = invoke(*(argument.format(**places) for argument in arguments))
    assert status == 2
    assert why in err
    assert "Traceback" not in err


def test_the_bubble_beside_that_of_the_schedule(tmp_path: Path) -> None:
    arguments = {"Collective name": "recv", "Process Group Description": "pp", "In msg nelems": 64}
    events = []
    for number in range(4):
        begin = 1000.0 * number
        events += [step(number, begin, begin + 999)]
        for part, (start, end) in enumerate([(10, 310), (400, 410), (500, 900)]):
            one = 10 * number + part + 1
            name, told = ("gemm", {}) if part == 2 else ("ncclDevKernel_SendRecv", arguments)
            events += [launch(begin + part, begin + part + 1, one)]
            events += [kernel(begin + start, begin + end, name, one, **told)]
    path = write(tmp_path / "rank0.json", *events)
    status, out, _ = invoke("breakdown", path, "--pipeline-stages", 4, "--micro-batches", 16, "--json")
    assert status == 0
    rank = json.loads(out)["ranks"]["0"]
    theory_ns = round(3 / 19 * rank["total"]["window_ns"])
    assert rank["bubble_by_schedule_ns"] == theory_ns
    assert rank["total"]["buckets_ns"]["bubble"] == 3 * 290_000
    assert rank["bubble_excess_ns"] == 3 * 290_000 - theory_ns
    out = invoke("breakdown", path, "--pipeline-stages", 4, "--micro-batches", 16)[1]
    assert "rank 0: the schedule alone idles 15.8% of a step; here +13.2%: stages out of balance" in out
    out = invoke("breakdown", path, "--pipeline-stages", 4, "--micro-batches", 4)[1]
    assert (
        "the schedule alone idles 42.9% of a step; here -13.9%: it computes longer than the others, or" in out
    )
    status, _, err = invoke("breakdown", path, "--pipeline-stages", 4)
    assert status == 2
    assert "are given together" in err


def test_nobody_is_named_where_all_are_late_in_turn(tmp_path: Path) -> None:
    for rank in range(3):
        turns = [200.0 if number % 3 == rank else 0.0 for number in range(12)]
        write(tmp_path / f"rank{rank}.json", *calls(turns), rank=None)
    _, out, _ = invoke("breakdown", tmp_path)
    assert "no rank made the others wait most" in out
    assert json.loads(invoke("breakdown", tmp_path, "--json")[1])["arrivals"]["latest"] is None
