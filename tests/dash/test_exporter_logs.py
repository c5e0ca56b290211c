"""A run that writes logs alone is exported."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from dash.test_exposition import parsed
from train_ledger.config import Config
from train_ledger.dash import exporter as exporter_module
from train_ledger.dash.exporter import Exporter
from train_ledger.run_dir import RunDir


def iteration(step: int) -> str:
    return (
        f" iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time per iteration "
        f"(ms): 1000.0 | learning rate: 1.5E-04 | lm loss: 2.5E+00 | grad norm: 1.250 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]
RUN = (("run", "r42"),)


def of_rank(rank: int) -> tuple[tuple[str, str], ...]:
    return (("rank", str(rank)), *RUN)


def read(exporter: Exporter) -> Series:
    while not exporter.poll():
        pass
    text = exporter.metrics()
    assert text is not None
    return parsed(text)


def spans(rank: int, host: str, steps: range, t: float) -> str:
    record = {"rank": rank, "global_rank": rank, "source": "training", "host_name": host, "tid": 7}
    lines = []
    for step in steps:
        of_step = {**record, "step": step, "relative_step": step, "log_type": "event"}
        for name, value in (("fwd_bwd", 700.0), ("step", 1000.0)):
            at = int((t + step) * 1e6)
            lines.append({**of_step, "time_us": at, "log_type_name": f"{name}_start"})
            lines.append({**of_step, "time_us": at, "log_type_name": f"{name}_end", "value": value})
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_the_steps_of_a_log_are_exported_under_rank_0(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "r42")
    append(run.logs / "train.log", "".join(map(iteration, range(1, 40))))
    exporter = Exporter(run, Config())
    metrics = read(exporter)
    assert metrics["train_step", of_rank(0)] == 39
    assert metrics["train_grad_norm", of_rank(0)] == 1.25
    assert metrics["train_exporter_files", RUN] == 1
    append(run.logs / "train.log", iteration(40))
    assert read(exporter)["train_step", of_rank(0)] == 40
    exporter.close()


def test_ranks_of_other_hosts_are_left_to_the_exporters_there(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "r42")
    now = time.time() - 20
    for rank, host in ((0, "n1"), (1, "n1"), (2, "n2")):
        file = run.structured_logs / f"training.global_rank_{rank}.20260101-ab.jsonl"
        append(file, spans(rank, host, range(1, 10), now))
    exporter = Exporter(run, Config(), hosts=["n1"])
    steps = {labels: value for (name, labels), value in read(exporter).items() if name == "train_step"}
    assert steps == {of_rank(0): 9, of_rank(1): 9}
    exporter.close()


def test_of_long_logs_the_ends_are_read_and_the_rest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter_module, "_LOGS_WHOLE_BYTES", 64 << 10)
    run = RunDir(tmp_path / "r42")
    append(run.logs / "train.log", "".join(map(iteration, range(1, 3000))))
    exporter = Exporter(run, Config(), memory=tmp_path / "memory")
    metrics = read(exporter)
    assert metrics["train_step", of_rank(0)] == 2999
    assert metrics["train_exporter_history_skipped_bytes", RUN] > 600_000
    assert any("MB of earlier lines were never read" in remark for remark in exporter.remarks())
    exporter.keep()
    assert not (tmp_path / "memory").exists()  # where logs were read to is not kept
    exporter.close()


def test_logs_of_many_gigabytes_do_not_hold_up_the_first_answer(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "r42")
    tail = "".join(map(iteration, range(4_000_000, 4_000_400)))
    for rank in range(8):
        file = run.logs / f"rank_{rank}.log"
        append(file, "".join(map(iteration, range(1, 40))))
        os.truncate(file, 500 << 20)
        append(file, "\n" + tail)
    began_s = time.process_time()
    exporter = Exporter(run, Config())
    metrics = read(exporter)
    took_s = time.process_time() - began_s
    assert [metrics["train_step", of_rank(rank)] for rank in range(8)] == [4_000_399] * 8
    assert took_s < 10, "it reads them whole"
    exporter.close()
