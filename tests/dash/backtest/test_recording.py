"""From when on what was told was known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.dash.backtest import Span, backtest, record
from train_ledger.facts import Event, Fault, HardwareReading
from train_ledger.run_dir import RunDir, RunDirError

T0 = 1_764_000_000.0


def run_of(tmp_path: Path, lines: dict[int, list[dict[str, Any]]]) -> RunDir:
    run_dir = RunDir(tmp_path / "r42")
    run_dir.signals.mkdir(parents=True)
    for rank, told in lines.items():
        text = "".join(json.dumps({"rank": rank, **line}) + "\n" for line in told)
        run_dir.signals_of(rank).write_text(text)
    return run_dir


def test_what_a_rank_wrote_later_is_known_later_whatever_its_line_says(tmp_path: Path) -> None:
    lines = [{"t": T0 + 10.02, "step": 1}, {"t": T0 + 10.0, "event": "run_end"}]
    known = record(run_of(tmp_path, {0: lines})).known
    assert [it.t for it in known] == [T0 + 10.02, T0 + 10.02]
    assert isinstance(known[1].what, Event)


def test_lines_of_two_ranks_come_in_the_order_of_the_runs_time(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "r42", ranks_per_host=2, clock_offsets_s={"node001": 600.0})
    recording = record(job.run_dir)
    assert recording.ended_t - recording.began_t < 600
    ranks = [it.what.rank for it in recording.known[-8:] if isinstance(it.what, Event)]
    assert sorted(rank for rank in ranks if rank is not None) == [0, 1, 2, 3]


def test_hardware_is_known_by_the_clock_of_its_host(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "r42", ranks_per_host=2, clock_offsets_s={"node001": 600.0})
    reading = {"t": job.t + 600, "host": "node001", "gpu": 0, "by": "nvml", "DCGM_FI_DEV_SM_CLOCK": 1980}
    job.run_dir.hardware.mkdir()
    (job.run_dir.hardware / "node001.jsonl").write_text(json.dumps(reading) + "\n")
    xid = f"{job.t + 601:.6f} node001 kernel: NVRM: Xid (PCI:0000:10:00): 79, pid=7, GPU has fallen off\n"
    (job.run_dir.hardware / "node001.kern.log").write_text(xid)
    known = [it for it in record(job.run_dir).known if it.of_host]
    assert [round(it.t - job.t) for it in known] == [0, 1]
    assert isinstance(known[0].what, HardwareReading)
    assert isinstance(known[1].what, Fault)


def test_a_host_whose_clock_stood_elsewhere_makes_no_run_of_many_years(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path, {0: [{"t": T0 + 5 * step, "step": step} for step in range(1, 50)]})
    run_dir.hardware.mkdir()
    looks = [
        {"t": t, "host": "n0", "gpu": 0, "by": "nvml", "DCGM_FI_DEV_GPU_TEMP": 50} for t in (0, T0, 9e10)
    ]
    (run_dir.hardware / "n0.jsonl").write_text("".join(json.dumps(look) + "\n" for look in looks))
    recording = record(run_dir)
    assert recording.ended_t - recording.began_t < 600
    assert "2 lines of hardware" in recording.not_observed[-1]


def test_a_run_that_was_taken_up_after_years_is_judged_where_one_says(tmp_path: Path) -> None:
    later_t = T0 + 400 * 86_400
    lines = [{"t": t0 + 5 * step, "step": step} for t0 in (T0, later_t) for step in range(1, 50)]
    again = {"t": later_t, "event": "run_start", "attempt": 1, "host": "n0", "pid": 7}
    lines = [*lines[:49], again, *({**line, "attempt": 1} for line in lines[49:])]
    run_dir = run_of(tmp_path, {0: lines})
    with pytest.raises(RunDirError, match=r"from 2025-11-\d\dT.* to 2026-12-.* --since and --until"):
        backtest(run_dir, Config())
    assert backtest(run_dir, Config(), span=Span(later_t)).hours > 0


@pytest.mark.parametrize("span", [Span(until_t=T0 - 1), Span(since_t=T0 + 1e6)])
def test_a_time_of_which_the_run_tells_nothing_is_not_judged(tmp_path: Path, span: Span) -> None:
    run_dir = run_of(tmp_path, {0: [{"t": T0 + 5 * step, "step": step} for step in range(1, 50)]})
    judged = backtest(run_dir, Config(), span=span)
    assert judged.since_t is None
    assert "between --since and --until" in judged.not_observed[-1]


def test_a_folder_without_lines_tells_nothing(tmp_path: Path) -> None:
    recording = record(RunDir(tmp_path))
    assert recording.known == ()
    assert "deaths of processes" in recording.not_observed[0]


def test_how_seldom_a_log_is_written_is_known_from_its_beginning(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "r42")
    run_dir.logs.mkdir(parents=True)
    log = Path(__file__).parents[2] / "recorded" / "logs" / "hf_trainer_with_bars.log"
    (run_dir.logs / "train.log").write_bytes(log.read_bytes())
    recording = record(run_dir)
    told = [it.t for it in recording.known if isinstance(it.what, Event) and it.what.name == "log_every"]
    assert told
    assert all(t == recording.began_t for t in told)
    assert "reckoned" in recording.not_observed[-1]
    assert backtest(run_dir, Config()).alerts == ()
