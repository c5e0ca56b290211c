"""A run that has logs alone is followed as one that writes signals."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from train_ledger.config import Config
from train_ledger.facts import Event, Fault, Step
from train_ledger.ledger import Fold
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunLogs

T0 = 1_770_000_000.0


def line(step: int, *, took_ms: float = 1000.0) -> str:
    return (
        f" iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time per iteration "
        f"(ms): {took_ms} | learning rate: 1.5E-04 | lm loss: 2.5E+00 | grad norm: 1.250 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def written(path: Path, text: str, t: float, *, anew: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if anew:
        fresh = path.with_name(".fresh")
        fresh.write_text(text)
        fresh.replace(path)
    else:
        with path.open("a") as file:
            file.write(text)
    os.utime(path, (t, t))


def steps(logs: RunLogs) -> list[tuple[int, str]]:
    return [(it.step, it.source) for it in logs.poll() if isinstance(it, Step)]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    (tmp_path / "logs").mkdir()
    return RunDir(tmp_path)


def test_each_line_is_told_once_as_it_comes(run: RunDir) -> None:
    log = run.logs / "train.log"
    logs = RunLogs(run)
    assert (logs.poll(), logs.silent) == ([], True)
    logs.close()
    logs = RunLogs(run)
    written(log, line(1) + line(2) + line(3)[:40], T0)
    assert steps(logs) == [(1, "logs/train.log:1"), (2, "logs/train.log:2")]
    assert logs.poll() == []
    written(log, line(3)[40:] + line(4), T0 + 2)
    assert steps(logs) == [(3, "logs/train.log:3"), (4, "logs/train.log:4")]
    logs.close()


def test_a_line_without_a_time_has_that_of_its_file_less_what_came_after_it(run: RunDir) -> None:
    written(run.logs / "train.log", "".join(map(line, (10, 20, 30))), T0)
    logs = RunLogs(run)
    assert [it.t for it in logs.poll() if isinstance(it, Step)] == [T0 - 20.0, T0 - 10.0, T0]
    logs.close()


def test_the_launchers_folders_are_followed_and_what_was_recorded_of_hardware_is_not(run: RunDir) -> None:
    written(run.logs / "r42" / "attempt_0" / "1" / "stderr.log", line(1) + line(2), T0)
    xid = f"{T0:.1f} n7 kernel: NVRM: Xid (PCI:0000:3B:00): 79, pid=7, name=py, GPU has fallen off the bus\n"
    written(run.path / "hardware" / "n7.kern.log", xid, T0)
    written(run.path / "hardware" / "n7.jsonl", "{}\n", T0)
    logs = RunLogs(run)
    facts = logs.poll()
    assert [it for it in facts if isinstance(it, Fault)] == []  # HardwareFiles tells it, once
    assert [it.step for it in facts if isinstance(it, Step)] == [1, 2]
    assert (logs.files, logs.bad_lines) == (1, {})
    logs.close()


def test_what_a_file_said_before_it_was_made_anew_stays_said(run: RunDir) -> None:
    metrics = run.logs / "metrics.csv"
    rows = "".join(f"0,{step},2.5\n" for step in range(10))
    written(metrics, f"epoch,step,train_loss\n{rows}", T0)
    logs = RunLogs(run)
    facts = logs.poll()
    assert len({it.step for it in facts if isinstance(it, Step)}) >= 9  # the last may wait for its other half
    written(metrics, "epoch,lr,step,train_loss\n0,0.1,8,2.4\n0,0.1,9,2.4\n0,0.1,10,2.4\n", T0 + 60, anew=True)
    facts = logs.poll()
    assert {it.step for it in facts if isinstance(it, Step)} >= {8, 9}
    assert all(it.attempt == 1 for it in facts if isinstance(it, Step))
    logs.close()


def test_such_a_run_has_a_step_clock_and_stalls(run: RunDir) -> None:
    log = run.logs / "train.log"
    logs, fold = RunLogs(run), Fold("r42", Config())
    for step in range(1, 60):
        written(log, line(step), T0 + step)
        fold.add_all(logs.poll())
    logs.close()
    assert fold.state(T0 + 60).state == "running"
    stalled = fold.state(T0 + 60 + 300)
    assert (stalled.state, stalled.step) == ("stalled", 59)


def test_a_fault_of_nobody_is_nobodys(run: RunDir) -> None:
    fold = Fold("r42", Config())
    fold.add(Step(T0, 1, None))
    fold.add(Fault(T0 + 1, "oom"))
    assert fold.state(T0 + 2).ranks[0].exception is None


def test_where_ranks_speak_for_themselves_nobody_speaks_for_rank_0() -> None:
    fold = Fold("r42", Config())
    fold.add(Event(T0, "run_start", 0, details={"world_size": 1}))
    fold.add(Step(T0 + 1, 1, 0))
    fold.add(Step(T0 + 1, 400, None))
    assert fold.state(T0 + 2).step == 1


def stamped(step: int, t: float) -> str:
    at = datetime.fromtimestamp(t).isoformat(" ", "seconds")
    figures = "loss:  2.5000  memory: 10.00GiB(12.00%)  tps: 1,234  mfu: 4.00%"
    return f"[titan] {at},000 - root - INFO - step: {step:2}  {figures}\n"


@pytest.mark.parametrize("zone_h", [-7.0, 0.0, 5.5, 9.0])
def test_times_of_another_zone_are_told_by_when_the_file_was_written(run: RunDir, zone_h: float) -> None:
    log, logs = run.logs / "train.log", RunLogs(run)
    told = []
    for step in range(1, 6):
        t = T0 + 10 * step
        written(log, stamped(step, t + zone_h * 3600), t + 1.5)
        told += [it.t - T0 for it in logs.poll() if isinstance(it, Step)]
    assert told == [10.0, 20.0, 30.0, 40.0, 50.0]
    logs.close()


def test_a_log_that_was_copied_later_keeps_its_times(run: RunDir) -> None:
    written(run.logs / "train.log", stamped(1, T0) + stamped(2, T0 + 10), T0 + 10 + 5 * 3600 + 777)
    logs = RunLogs(run)
    assert [it.t for it in logs.poll() if isinstance(it, Step)] == [T0, T0 + 10]
    logs.close()


def test_what_could_not_be_read_is_counted_over_all_files_and_over_those_made_anew(run: RunDir) -> None:
    titan = run.structured_logs / "training.global_rank_0.20260101-ab.jsonl"
    written(titan, '{"log_type_name": "x", "log_type": "y"}\n' + "torn {\n" * 3, T0)
    (run.logs / "pipe.log").mkdir()
    logs = RunLogs(run)
    logs.poll()
    assert logs.bad_lines == {"not_json": 3}
    written(titan, '{"log_type_name": "x", "log_type": "y"}\n' + "torn {\n", T0 + 9, anew=True)
    logs.poll()
    assert logs.bad_lines == {"not_json": 4}
    assert logs.where == {"not_json": "structured_logs/training.global_rank_0.20260101-ab.jsonl"}
    logs.close()


def test_logs_beyond_a_limit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train_ledger.sources.logs.log_folders._MOST_FILES", 1)
    for name in "ab":
        written(tmp_path / "logs" / name, line(1), T0)
    logs = RunLogs(RunDir(tmp_path))
    logs.poll()
    assert (logs.files, logs.bad_lines) == (1, {"too_many_logs": 1})
    assert logs.last_problem == f"{tmp_path}: logs beyond the first 1 are not followed"
    logs.close()
