"""What DeepSpeed's csv monitor writes, by samples, with its header again after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.facts import Event, Step
from train_ledger.sources import read_facts
from train_ledger.sources.formats.deepspeed.deepspeed_csv import DeepSpeedCsv
from train_ledger.sources.lines.log_line import LogLine


def told(*lines: str):
    reader = DeepSpeedCsv()
    found = [fact for number, it in enumerate(lines, 1) for fact in reader.read(LogLine(it), f"c:{number}")]
    return [*found, *reader.end()], reader


def steps(*lines: str) -> list[Step]:
    return [it for it in told(*lines)[0] if isinstance(it, Step)]


def test_samples_over_the_batch_are_the_step() -> None:
    found = steps("step,train_loss", "64,5.5", "128,5.25", "192,5.0")
    assert [(it.step, it.values["consumed_samples"], it.values["loss"]) for it in found] == [
        (1, 64.0, 5.5),
        (2, 128.0, 5.25),
        (3, 192.0, 5.0),
    ]
    assert found[0].source == "c:2"


def test_a_header_in_the_middle_is_a_restart() -> None:
    found, reader = told("step,lr", "64,0.1", "128,0.2", "step,lr", "128,0.2", "192,0.3")
    assert [it.step if isinstance(it, Step) else it.name for it in found] == [1, 2, "run_start", 2, 3]
    assert not reader.damaged
    assert isinstance(found[2], Event)


def test_the_files_of_one_run_are_of_one_attempt(tmp_path: Path) -> None:
    for tag in ("lr", "train_loss"):
        (tmp_path / f"Train_Samples_{tag}.csv").write_text(f"step,{tag}\n32,1.0\n64,2.0\n")
    assert {it.attempt for it in read_facts([tmp_path])} == {0}


def test_a_restart_that_goes_back_is_a_new_attempt(tmp_path: Path) -> None:
    (tmp_path / "Train_Samples_lr.csv").write_text("step,lr\n32,1.0\n64,2.0\nstep,lr\n64,2.0\n96,3.0\n")
    found = [(it.step, it.attempt) for it in read_facts([tmp_path]) if isinstance(it, Step)]
    assert found == [(1, 0), (2, 0), (2, 1), (3, 1)]


def test_a_batch_that_grows_moves_one_step_on() -> None:
    assert [it.step for it in steps("step,lr", "64,0.1", "128,0.1", "224,0.1", "320,0.1")] == [1, 2, 3, 5]


def test_a_single_row_is_told_at_the_end() -> None:
    assert [it.step for it in steps("step,lr", "64,0.1")] == [1]


@pytest.mark.parametrize(
    ("tag", "field", "value"),
    [
        ("train_loss", "loss", 250.0),
        ("loss_scale", "loss_scale", 250.0),
        ("elapsed_time_ms_forward", "fwd_s", 0.25),
    ],
)
def test_a_tag_goes_by_our_name_and_unit(tag, field, value) -> None:
    assert steps(f"step,{tag}", "64,250.0")[0].values[field] == value


def test_what_is_no_row_is_counted() -> None:
    found, reader = told("step,lr", "64,0.1", "96", "nan,5", "", "128,0.1", "-5,1", "1e300,1")
    assert [it.step for it in found] == [1, 2]
    assert reader.damaged == {"a row that is not two numbers": 4}


def test_it_is_recognised_by_header_and_name_together() -> None:
    assert DeepSpeedCsv.fits(b"step,train_loss\r\n64,5.0\r\n", "Train_Samples_train_loss.csv")
    assert not DeepSpeedCsv.fits(b"step,train_loss\r\n64,5.0\r\n", "metrics.csv")
    assert not DeepSpeedCsv.fits(b"epoch,step,train_loss\n0,1,5.0\n", "train_loss.csv")


def test_what_the_library_itself_writes_is_read(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("deepspeed")
    from deepspeed.monitor import csv_monitor
    from deepspeed.monitor.config import CSVConfig

    monkeypatch.setattr(csv_monitor.dist, "get_rank", lambda: 0)
    config = CSVConfig(enabled=True, output_path=str(tmp_path), job_name="job")
    for start in (1, 3):
        monitor = csv_monitor.csvMonitor(config)
        monitor.write_events([("Train/Samples/train_loss", 5.0 / it, it * 32) for it in (start, start + 1)])
    (path,) = tmp_path.rglob("*.csv")
    assert DeepSpeedCsv.fits(path.read_bytes(), path.name)
    found, _ = told(*path.read_text().splitlines())
    assert [it.step if isinstance(it, Step) else it.name for it in found] == [1, 2, "run_start", 3, 4]
