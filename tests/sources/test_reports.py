"""What people reported of monitors that read training jobs, and what is right: one test a report.

Each docstring names the reports. Where the right behaviour is another room's, its own tests say more.
"""

from __future__ import annotations

import json
import math
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from train_ledger import SignalLogger
from train_ledger.config import Config
from train_ledger.dash.exporter import Exporter
from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.ledger import Fold
from train_ledger.run_dir import RunDir
from train_ledger.signals.sampling.throughput import Throughput
from train_ledger.signals.timing.work_clock import WorkClock
from train_ledger.sources import Progress, RunLogs, read_facts

T0 = 1_770_000_000.0
MODEL = {"params": 8e9, "layers": 32, "heads": 32, "head_dim": 128, "seq_len": 8192}


def megatron(
    step: int, *, loss: str = " lm loss: 2.500000E+00 |", grad_norm: str = "1.250", more: str = ""
) -> str:
    return (
        f" iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time per iteration "
        f"(ms): "
        f"1250.0 | learning rate: 1.500000E-04 | global batch size:    64 |{loss} loss scale: 1.0 | "
        f"grad norm: {grad_norm} | number of skipped iterations:   0 | number of nan iterations:   0 "
        f"|{more}\n"
    )


def read(path: Path, text: str) -> tuple[list[Fact], Any]:
    path.write_text(text)
    reading = read_facts([path])
    return list(reading), reading


def test_1_tokens_a_second_after_a_resume_are_of_one_attempt() -> None:
    """transformers#40560, LlamaFactory#7415, Megatron-Bridge#2350: all tokens by the time since the "
    "resume."""
    progress = Progress()
    for attempt, step, t, tokens in (
        (0, 1, 0.0, 0.0),
        (0, 2, 10.0, 1000.0),
        (1, 3, 100.0, 1000.0),
        (1, 4, 101.0, 1100.0),
    ):
        progress.add(Step(t, step, 0, attempt, values={"consumed_tokens": tokens}))
    assert [it.tokens_per_s for it in progress.of_rank(0)] == [100.0, 100.0]


def test_2_steps_after_a_restart_are_kept_and_those_done_again_are_rework(tmp_path: Path) -> None:
    """wandb#4482, wandb#2234, allenai/tango#152: the points of a step that went back are dropped."""
    facts, reading = read(tmp_path / "train.log", "".join(map(megatron, [*range(1, 13), *range(11, 15)])))
    assert len(facts) == 16
    *_, current = reading.files[0].progress.attempts.values()
    assert (current.attempt, current.last_step, current.redone) == (1, 14, 2)


def test_3_a_loss_that_is_not_there_though_nothing_was_skipped_is_suspected(tmp_path: Path) -> None:
    """bigscience-workshop/Megatron-DeepSpeed#396: a NaN in bf16 leaves the loss out of the line."""
    facts, _ = read(
        tmp_path / "train.log", megatron(1) + megatron(2, loss="", grad_norm="nan") + megatron(3, loss="")
    )
    assert [(it.fault, it.step) for it in facts if isinstance(it, Fault)] == [("nan_suspected", 2)]


def test_4_a_filter_that_keeps_a_nan_out_of_the_loss_does_not_hide_it(tmp_path: Path) -> None:
    """trl#6702, transformers#13619: logging_nan_inf_filter shows a finite mean."""
    lines = "".join(
        f"{{'loss': 2.0, 'grad_norm': {norm}, 'learning_rate': 2e-05, 'epoch': 0.{step}}}\n"
        f" {step}%|#         | {step}/100 [00:0{step}<01:10,  1.00s/it]\n"
        for step, norm in ((1, "0.5"), (2, "nan"), (3, "nan"))
    )
    facts, _ = read(tmp_path / "train.log", lines)
    (fault,) = (it for it in facts if isinstance(it, Fault))
    assert fault.fault == "nan_suspected"
    assert all(it.values["loss"] == 2.0 for it in facts if isinstance(it, Step) and "loss" in it.values)


@pytest.mark.parametrize(
    ("text", "value"),
    [("6.05e-06", 6.05e-06), ("1E+1", 10.0), ("nan", math.nan), ("inf", math.inf), ("-1.0", -1.0)],
)
def test_5_a_number_keeps_its_exponent(text: str, value: float, tmp_path: Path) -> None:
    """cruijff_kit#448, BVLC/caffe#1697: 6.05e-06 was read as 6.05."""
    loss = f" lm loss: {text} |"
    facts, _ = read(tmp_path / "train.log", megatron(1) + megatron(2, loss=loss))
    (step,) = (it for it in facts if isinstance(it, Step) and it.step == 2)
    assert step.values["loss"] == pytest.approx(value, nan_ok=True)


def test_6_a_field_that_changed_its_name_is_read_under_both_and_an_unknown_one_passes(tmp_path: Path) -> None:
    """ROCm/cvs#158: an upgrade renamed the throughput, and it was silently lost."""
    old, new = " TFLOPs: 78.00 |", " throughput per GPU (TFLOP/s/GPU): 79.0 | some new figure: 7.5 |"
    facts, reading = read(tmp_path / "train.log", megatron(1, more=old) + megatron(2, more=new))
    steps = [it for it in facts if isinstance(it, Step)]
    assert [it.values["tflops"] for it in steps] == [78.0, 79.0]
    assert steps[1].values["some_new_figure"] == 7.5
    (seen,) = reading.files[0].formats
    assert "tflops" not in seen.not_seen
    assert "consumed_tokens" in seen.not_seen
    assert all("consumed_tokens" not in it.values for it in steps)


def test_7_an_exporter_tells_how_old_what_it_tells_is(tmp_path: Path) -> None:
    """fstab/grok_exporter#13, ncabatoff/process-exporter#358: the last value is repeated for ever."""
    (tmp_path / "signals").mkdir()
    (tmp_path / "run.json").write_text('{"run": "r42", "world_size": 1}')
    line = {"t": T0, "step": 7, "rank": 0, "loss": 2.0}
    (tmp_path / "signals" / "rank_00000.jsonl").write_text(f"{json.dumps(line)}\n")
    exporter = Exporter(RunDir(tmp_path), Config(), clock=lambda: T0 + 600)
    try:
        while not exporter.poll():
            pass
        metrics = dict(
            line.rsplit(" ", 1) for line in (exporter.metrics() or "").splitlines() if line[:1] != "#"
        )
    finally:
        exporter.close()
    (heard,) = (
        value for name, value in metrics.items() if name.startswith("train_last_log_timestamp_seconds")
    )
    assert float(heard) == T0


def test_8_rows_that_a_logger_deletes_when_it_resumes_were_read_and_stay(tmp_path: Path) -> None:
    """roboflow/rf-detr#1321: Lightning's CSVLogger deletes metrics.csv and writes another header."""
    (tmp_path / "logs").mkdir()
    metrics = tmp_path / "logs" / "metrics.csv"
    metrics.write_text("epoch,step,train_loss\n" + "".join(f"0,{step},2.5\n" for step in range(10)))
    logs, progress = RunLogs(RunDir(tmp_path)), Progress()
    for fact in logs.poll():
        progress.add(fact)
    metrics.unlink()
    metrics.write_text("epoch,lr,step,train_loss\n" + "".join(f"0,0.1,{step},2.4\n" for step in (7, 8, 9)))
    for fact in logs.poll():
        progress.add(fact)
    logs.close()
    old, new = progress.attempts.values()
    assert old.last_step >= 8
    assert (new.first_step, new.attempt) == (7, 1)


def test_9_the_rank_that_drags_is_told_by_its_own_work_not_by_the_wall() -> None:
    """traceopt-ai/traceml#252: a delay in one rank's backward makes all ranks' backward as long."""

    class Line:
        """A clock that is set by hand, in seconds."""

        t = 0.0

        def now(self) -> float:
            return self.t

        def between(self, start: float, end: float) -> float:
            return end - start

        def passed(self, stamp: float) -> bool:
            return True

    work = {}
    for rank, (own_s, waits_s) in enumerate([(0.090, 0.203), (0.290, 0.003), (0.091, 0.202), (0.090, 0.203)]):
        clock, line = WorkClock(), Line()
        clock.line = line  # type: ignore[assignment]
        clock.step(whole=True)
        line.t += own_s
        stamp = clock.begin_wait()
        line.t += waits_s
        clock.end_wait(stamp)
        work[rank] = clock.step(whole=True)["compute_s"]
    assert work == pytest.approx({0: 0.090, 1: 0.290, 2: 0.091, 3: 0.090})


def test_10_a_job_that_stands_still_without_a_word_is_stalled() -> None:
    """pytorch#97191, pytorch#76287, goodfire-ai/spd#552: alive, the GPU busy, no message, hours lost."""
    fold = Fold("r42", Config(), {"world_size": 4})
    for rank in range(4):
        fold.add(Event(T0, "run_start", rank, details={"world_size": 4}))
        for step in range(1, 101):
            fold.add(Step(T0 + 2 * step, step, rank))
    assert fold.state(T0 + 210).state == "running"
    assert fold.state(T0 + 200 + 95).state == "stalled"


def test_11_a_peak_that_is_not_known_gives_no_mfu_and_more_than_100_percent_is_said(tmp_path: Path) -> None:
    """torchtitan#4800, Primus#772, OLMo-core#810, nanoGPT#464: the peak of another device."""
    for device in ("Foo GPU", "AMD Instinct MI999X"):
        assert "mfu" not in Throughput(MODEL, None, device=device).fields(4096, 1.0)
    said: list[str] = []
    known = Throughput(MODEL, None, device="NVIDIA H100 80GB HBM3")
    known.warn = lambda about, message: said.append(message)
    assert known.fields(1e6, 1.0)["mfu"] > 100
    assert "more than the device can do" in said[0]
    line = (
        "2026-02-03 04:05:0{0},004 - root - INFO - step: {0}  loss:  5.1  memory: 30.00GiB(60.00%)  "
        "tps: 2,100  mfu: 563.00%\n"
    )
    _, reading = read(tmp_path / "train.log", line.format(1) + line.format(2))
    (attempt,) = reading.files[0].progress.attempts.values()
    assert attempt.mfu_most == 563.0


def test_12_a_disk_that_hangs_does_not_hold_up_the_training(tmp_path: Path) -> None:
    """wandb#3223, wandb#8666, prime-rl#549: the tracker stalls the job."""
    logger = SignalLogger(tmp_path, rank=0, queue_lines=1000)
    let_go = threading.Event()
    write = logger._sink.write
    logger._sink.write = lambda data: (let_go.wait(120), write(data))[1]  # type: ignore[method-assign]
    took_s = []
    for step in range(20_000):
        began = time.thread_time()
        logger.log(step=step, loss=2.0)
        took_s.append(time.thread_time() - began)
    assert sorted(took_s)[int(len(took_s) * 0.99)] < 1e-2, "nobody waits half a minute"
    assert logger.dropped_lines > 0
    let_go.set()
    logger.close()


def test_13_a_watchdogs_line_behind_a_progress_bar_is_found_and_one_incident(tmp_path: Path) -> None:
    """pytorch#118369: no line of its own, and it ran for seven hours."""
    bar = " 41%|####1     | 410/1000 [1:10:00<1:40:00, 10.2s/it]"
    lines = "".join(
        f"{bar}[E ProcessGroupNCCL.cpp:455] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 25624887 milliseconds before "
        "timing out.\n"
        for rank in range(4)
        for seq in (100, 101)
    )
    facts, reading = read(tmp_path / "train.log", lines)
    faults = [it for it in facts if isinstance(it, Fault)]
    assert {(it.details["rank_in_group"], it.details["seq"]) for it in faults} == {
        (rank, seq) for rank in range(4) for seq in (100, 101)
    }
    assert {it.details["ran_ms"] for it in faults} == {25_624_887}
    (incident,) = reading.incidents.all
    assert (incident.times, incident.seqs) == (8, {100, 101})


def test_14_a_header_that_comes_again_is_no_row_and_a_rank_in_a_group_is_no_rank(tmp_path: Path) -> None:
    """Found by reading: DeepSpeed's CSV monitor; `[Rank 1]` of a group beside `[rank4]:`."""
    rows = "step,train_loss\n64,2.5\n128,2.4\nstep,train_loss\n128,2.45\n192,2.3\n"
    facts, reading = read(tmp_path / "Train_Samples_train_loss.csv", rows)
    assert sum(isinstance(it, Step) for it in facts) == 4
    assert reading.files[0].damaged == {}
    line = (
        "[rank4]:[E214 04:05:06.3 ProcessGroupNCCL.cpp:2240] [PG ID 5 PG GUID 41 Rank 1]  failure "
        "detected by "
        "watchdog at work sequence id: 12 PG status: last enqueued work: 13, last completed work: 11\n"
    )
    (fault,), _ = read(tmp_path / "rank.log", line)
    assert isinstance(fault, Fault)
    assert (fault.rank, fault.details["rank_in_group"]) == (4, 1)
