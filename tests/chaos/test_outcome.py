"""The drill's three questions, answered from what lies in a run directory."""

import json
import os
from dataclasses import replace

import pytest

from hang.recorder import Job
from train_ledger.chaos import plan_of
from train_ledger.chaos.dump_place import DefaultPlace
from train_ledger.chaos.outcome import as_text, dumps_of, judge
from train_ledger.run_dir import RunDir


@pytest.fixture
def run_dir(tmp_path):
    """A run of four ranks in which rank 2 did not come; it left no dump either, and said why."""
    run = RunDir(tmp_path / "run")
    job = Job(4, backend="gloo")
    job.issue(range(4), done=True)
    job.issue([0, 1, 3])
    job.write(run.comm_traces(), ranks=[0, 1, 3])
    run.requests.mkdir()
    run.request("i-dump").write_text("{}")
    run.reply("i-dump", 2).write_text('{"ok": false, "error": "this build of torch has no Flight Recorder"}')
    run.ledger.mkdir()
    asked_t = 1_764_000_000.0
    entries = [
        {"kind": "response_started", "incident": "i", "living": 4},
        {"kind": "verdict", "incident": "i", "place": None, "diagnosis": DIAGNOSIS},
    ]
    lines = [json.dumps({"t": asked_t + 9 * n, "kind": it.pop("kind"), **it}) for n, it in enumerate(entries)]
    run.journal.write_text("\n".join(lines) + "\n")
    for rank in (0, 1, 3):
        os.utime(run.comm_trace_of(rank), (asked_t + rank, asked_t + rank))
    return run


DIAGNOSIS = {"state": "stalled", "cause": "hang.host", "ranks": [2]}


def test_which_dumps_are_there_and_why_one_is_not(run_dir):
    dumps = dumps_of(run_dir, 4)
    assert dumps.there == (0, 1, 3)
    assert dumps.missing == {2: "this build of torch has no Flight Recorder"}
    assert dumps.gathered_s == 3.0


def test_what_was_refused_is_not_there(run_dir):
    run_dir.comm_trace_of(1).write_bytes(b"no dump")
    assert dumps_of(run_dir, 4).there == (0, 3)


def test_a_job_that_left_nothing(tmp_path):
    dumps = dumps_of(RunDir(tmp_path / "nothing"), 2)
    assert dumps.missing == {0: "nobody asked it while it lived", 1: "nobody asked it while it lived"}
    assert (dumps.there, dumps.gathered_s, dumps.culprits) == ((), None, ())


@pytest.mark.parametrize(("culprit", "right"), [(2, True), (1, False)])
def test_the_named_rank_is_held_against_the_planted_one(run_dir, culprit, right):
    outcome = judge(run_dir, plan_of("sleep", culprit, 4), 1_764_000_000.0 - 10, 1, None)
    assert outcome.right is right
    assert outcome.named == (2,)
    assert outcome.job_start_to_verdict_s == 19.0


def test_another_cause_than_the_modes_is_not_right(run_dir):
    assert not judge(run_dir, plan_of("size", 2, 4), 0.0, 1, None).right


def test_the_text_answers_the_three_questions(run_dir):
    plan = plan_of("sleep", 2, 4)
    text = as_text(judge(run_dir, plan, 1_764_000_000.0 - 10, 1, dumps_of(run_dir, 4)))
    assert "planted  rank 2, mode sleep; over gloo it hangs\n" in text
    assert "named    rank 2, hang.host – right\n" in text
    assert "pages    1 received by the webhook\n" in text
    assert "dumps    3 of 4 there, the last 3.0 s after the page\n" in text
    assert "none of rank 2: this build of torch has no Flight Recorder\n" in text


def test_where_dumps_fall_that_nobody_gave_a_place_is_said(run_dir):
    outcome = judge(run_dir, plan_of("sleep", 2, 4, no_dump_path=True), 0.0, 1, None)
    place = DefaultPlace("/root/.cache/torch/comm_lib_trace_rank_", (), ("torch wrote no dump at all",))
    text = as_text(replace(outcome, default_place=place))
    assert "without a dump path torch writes to /root/.cache/torch/comm_lib_trace_rank_RANK" in text
    assert "torch wrote no dump at all" in text
