"""What a dry run of the user's own training tells."""

import json

from train_ledger.ops.preflight.own_run import read_own_run
from train_ledger.run_dir import RunDir


def write(run_dir, rank, *lines):
    run_dir.signals.mkdir(exist_ok=True)
    run_dir.signals_of(rank).write_text("".join(json.dumps({"rank": rank, **line}) + "\n" for line in lines))


def test_steps_are_by_attempt_and_rank_and_peaks_of_the_last(tmp_path):
    run_dir = RunDir(tmp_path)
    write(
        run_dir,
        0,
        {"t": 1.0, "step": 1, "loss": 2.0, "mem_allocated_peak": 9.0},
        {"t": 2.0, "step": 2, "loss": 1.9, "mem_allocated_peak": 5.0},
        {"t": 3.0, "attempt": 1, "event": "run_start", "host": "n0"},
        {"t": 4.0, "attempt": 1, "step": 2, "loss": 1.9, "mem_allocated_peak": 6.0},
        {"t": 5.0, "attempt": 1, "step": 3, "loss": 1.8, "mem_allocated_peak": 7.0},
    )
    own = read_own_run(run_dir)
    assert own.last_attempt == 1
    assert own.steps[0][0][2].values["loss"] == own.steps[1][0][2].values["loss"] == 1.9
    assert own.largest("mem_allocated_peak") == {0: 7.0}
    assert [it.name for it in own.events] == ["run_start"]


def test_a_run_that_has_not_begun_holds_nothing(tmp_path):
    own = read_own_run(RunDir(tmp_path))
    assert (own.steps, own.last_attempt, own.largest("mfu")) == ({}, None, {})


def test_a_run_that_has_long_begun_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("train_ledger.ops.preflight.own_run._MOST_BYTES", 10)
    write(RunDir(tmp_path), 0, {"t": 1.0, "step": 1, "loss": 2.0})
    own = read_own_run(RunDir(tmp_path))
    assert own.steps == {}
    assert "trained for long" in own.why_not
