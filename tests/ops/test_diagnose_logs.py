"""A run that has logs alone is diagnosed, and what they tell of all ranks is held against none."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ops.cascades import timed_out
from sources.mutated_lines import LINES, OWNED, mutated
from train_ledger.answer import STATES
from train_ledger.config import Config, Limits
from train_ledger.dash.exporter import Exporter
from train_ledger.ops import diagnose
from train_ledger.run_dir import RunDir

RAISED = """\
Traceback (most recent call last):
  File "train.py", line 88, in <module>
    step()
ValueError: no
"""


def iteration(step: int, loss: str = "2.5E+00") -> str:
    return (
        f" iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time per iteration "
        f"(ms): 1000.0 | learning rate: 1.5E-04 | lm loss: {loss} | grad norm: 1.250 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def put(run: RunDir, text: str, *, age_s: float, name: str = "train.log") -> None:
    run.logs.mkdir(parents=True, exist_ok=True)
    path = run.logs / name
    path.write_text(text)
    t = time.time() - age_s
    os.utime(path, (t, t))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "r42")


def steps(*, since: int = 1, until: int = 200) -> str:
    return "".join(iteration(step) for step in range(since, until))


def test_a_run_whose_log_goes_on_is_well(run: RunDir) -> None:
    put(run, steps(), age_s=2)
    found = diagnose(run, Config())
    assert (found.state, found.cause, found.ranks) == ("running", "none", ())
    assert "signals: none were written, so that the logs alone tell of the run" in found.not_observed


def test_a_log_that_stands_still_is_a_hang_of_nobody(run: RunDir) -> None:
    put(run, steps(), age_s=600)
    found = diagnose(run, Config())
    assert (found.state, found.ranks, found.since_step) == ("stalled", (), 199)
    assert found.cause == "unknown"


def test_that_logs_do_not_tell_of_how_many_ranks_they_are_is_said(run: RunDir) -> None:
    put(run, steps(), age_s=900)
    for rank in range(4):
        put(run, timed_out(rank, time.time() - 200), age_s=200, name=f"rank_{rank}.log")
    found = diagnose(run, Config())
    assert (found.cause, found.ranks, found.confidence) == ("hang.fabric", (), "low")
    assert any(line.startswith("how many ranks the run has: no log tells") for line in found.not_observed)


def test_an_exception_that_names_no_rank_is_not_rank_0_s(run: RunDir) -> None:
    put(run, "[rank0]: UserWarning: slow\n" + steps() + RAISED, age_s=600)
    assert diagnose(run, Config()).ranks == ()


def test_a_rank_that_its_log_names_is_the_one_that_raised(run: RunDir) -> None:
    named = "".join(f"[rank3]: {line}\n" for line in RAISED.splitlines())
    put(run, steps() + named, age_s=600)
    found = diagnose(run, Config())
    assert (found.cause, found.ranks) == ("hang.rank_died", (3,))


def test_a_loss_that_the_log_tells_of_all_is_no_rank_s(run: RunDir) -> None:
    named = "".join(f"[rank{rank}]: {iteration(205)}" for rank in (1, 2))
    put(run, steps() + "".join(iteration(step, "nan") for step in range(200, 205)) + named, age_s=2)
    found = diagnose(run, Config())
    assert (found.state, found.cause, found.ranks) == ("numeric_fault", "numeric.nan", ())


def test_as_known_at_a_moment_before(run: RunDir) -> None:
    put(run, steps(), age_s=600)
    before = diagnose(run, Config(), at=time.time() - 700)
    assert (before.state, before.cause) == ("running", "none")


def test_how_many_gpus_stand_is_not_made_up(run: RunDir) -> None:
    put(run, steps(), age_s=600)
    assert diagnose(run, Config()).impact is None
    run.merge_run({"world_size": 64})
    impact = diagnose(run, Config()).impact
    assert impact is not None
    assert impact.gpu_hours == pytest.approx(64 * 600 / 3600, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_stands_in_the_logs_there_is_an_answer(run: RunDir, seed: int) -> None:
    put(run, b"\n".join(mutated(LINES, 400, seed)).decode("utf-8", "replace"), age_s=600)
    for name, lines in OWNED:
        text = b"\n".join([*(it.encode() for it in lines), *mutated(lines, 50, seed)])
        put(run, text.decode("utf-8", "replace"), age_s=60, name=name)
    found = diagnose(run, Config())
    assert found.state in STATES
    exporter = Exporter(run, Config(limits=Limits(unknown_fields=True)))
    while not exporter.poll():
        pass
    assert list(text_string_to_metric_families(exporter.metrics() or ""))
    exporter.close()


def test_a_rank_of_torchtitan_that_fell_silent_a_step_before_is_shown_and_not_accused(run: RunDir) -> None:
    run.structured_logs.mkdir(parents=True)
    ended_t = time.time() - 600
    for rank in range(4):
        record = {"rank": rank, "global_rank": rank, "source": "training", "host_name": "n1", "tid": 7}
        lines = []
        for step in range(1, 60 if rank == 2 else 61):
            of_step = {**record, "step": step, "relative_step": step, "log_type": "event"}
            of_step["time_us"] = int((ended_t - 60 + step) * 1e6)
            lines += [{**of_step, "log_type_name": "step_start"}]
            lines += [{**of_step, "log_type_name": "step_end", "value": 1000.0}]
        path = run.structured_logs / f"training.global_rank_{rank}.20260101-ab.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = diagnose(run, Config())
    assert (found.state, found.cause, found.ranks, found.since_step) == ("stalled", "unknown", (), 60)
    assert "step 60, which most ranks completed, is not completed by rank 2" in found.evidence


@pytest.mark.parametrize("trains", [False, True], ids=["before a step", "steps that tell no time or number"])
def test_watchdogs_that_gave_up_are_a_hang_whatever_a_start_may_take(run: RunDir, trains: bool) -> None:
    t = time.time() - 60
    line = "{'loss': 2.5, 'grad_norm': 1.1, 'learning_rate': 1e-4, 'epoch': 0.01}\n"
    for rank in range(4):
        text = line * 50 if trains and rank == 0 else ""
        put(run, text + (timed_out(rank, t, seq=1) if rank != 2 else ""), age_s=50, name=f"rank_{rank}.log")
    found = diagnose(run, Config())
    assert (found.cause, found.ranks, found.confidence) == ("hang.rank_missing", (2,), "low")


def test_a_start_whose_watchdogs_gave_up_is_a_hang_before_its_limit(run: RunDir) -> None:
    t = time.time() - 900
    for rank in range(4):
        start = {"event": "run_start", "world_size": 4, "host": "n1", "pid": 70 + rank}
        lines = [start, {"event": "phase_start", "phase": "start_up"}]
        run.signals.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps({"t": t, "step": 0, "rank": rank, **it}) + "\n" for it in lines)
        run.signals_of(rank).write_text(text)
    assert diagnose(run, Config()).cause == "none"
    for rank in range(4):
        put(run, timed_out(rank, t + 610, seq=1), age_s=290, name=f"rank_{rank}.log")
    assert diagnose(run, Config()).cause.startswith("hang.")
    assert diagnose(run, Config(), at=t + 300).cause == "none"


def test_what_watchdogs_gave_up_before_a_new_start_is_not_of_it(run: RunDir) -> None:
    t = time.time() - 900
    for rank in range(4):
        start = {"event": "run_start", "world_size": 4, "host": "n1", "pid": 70 + rank}
        run.signals.mkdir(parents=True, exist_ok=True)
        lines = [{"t": t - 1000, "attempt": 0}, {"t": t, "attempt": 1}]
        text = "".join(json.dumps({"step": 0, "rank": rank, **start, **it}) + "\n" for it in lines)
        run.signals_of(rank).write_text(text)
        put(run, timed_out(rank, t - 20, seq=1), age_s=920, name=f"rank_{rank}.log")
    assert diagnose(run, Config()).cause == "none"
