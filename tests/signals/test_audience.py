"""One rank's numbers go to TensorBoard and W&B where start() is asked for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from signals.scripts import events, run_to_end, signal_lines

TRAINING = """
monitor.close()
monitor = train_ledger.start(monitor.run_dir.path, parallelism={parallelism!r}, {also})
took_s = []
for step in range({steps}):
    monitor.log(lr=1e-3)
    began = time.perf_counter()
    monitor.step(step, loss=1.0 / (step + 1))
    took_s.append(time.perf_counter() - began)
    time.sleep(0.002)
began = time.monotonic()
monitor.close()
print(sorted(took_s)[{steps} // 2], sorted(took_s)[{steps} * 99 // 100], time.monotonic() - began)
"""

FAKE = """
import json, os, time
class Settings(dict):
    pass
class Run:
    def define_metric(self, name, step_metric=None):
        pass
    def log(self, values):
        {log}
        print(json.dumps(values), file=open(os.environ["FAKE_WANDB_LOG"], "a"))
    def finish(self):
        pass
def init(**arguments):
    print(json.dumps(arguments), file=open(os.environ["FAKE_WANDB_LOG"], "a"))
    return Run()
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "wandb.py").write_text(FAKE.format(log="pass"))
    return {"PYTHONPATH": str(fakes), "FAKE_WANDB_LOG": str(tmp_path / "logged.jsonl")}


def _training(also: str, steps: int = 20, parallelism: object = None) -> str:
    return TRAINING.format(also=also, steps=steps, parallelism=parallelism)


def _logged(tmp_path: Path) -> list[str]:
    path = tmp_path / "logged.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def test_the_numbers_of_every_step_with_all_that_was_measured(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    run = tmp_path / "r42"
    ended = run_to_end(run, _training("wandb={'project': 'big'}"), environ)
    assert ended.returncode == 0, ended.stderr
    begun, *steps = _logged(tmp_path)
    assert '"project": "big"' in begun
    assert '"name": "r42 attempt 1"' in begun  # the script's own monitor was the first
    assert len(steps) == 20
    for field in ("train/step", "train/attempt", "train/loss", "train/lr", "train/step_time_s"):
        assert f'"{field}":' in steps[-1]
    assert len([line for line in signal_lines(run) if "event" not in line]) == 20


@pytest.mark.parametrize(("rank", "speaks"), [("0", False), ("2", True), ("3", False)])
def test_only_the_rank_that_has_the_loss_speaks(
    rank: str, speaks: bool, tmp_path: Path, environ: dict[str, str]
) -> None:
    of_rank = {**environ, "RANK": rank, "WORLD_SIZE": "4", "LOCAL_RANK": rank}
    run_to_end(tmp_path / "r42", _training("wandb=True", 2, {"pp": 2, "dp": 2}), of_rank)
    assert bool(_logged(tmp_path)) is speaks


def test_a_library_that_hangs_costs_no_step_a_millisecond_and_the_exit_seconds_only(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "fakes" / "wandb.py").write_text(FAKE.format(log="time.sleep(60)"))
    ended = run_to_end(tmp_path / "r42", _training("wandb=True", 1500), environ)
    assert ended.returncode == 0, ended.stderr
    p50_s, p99_s, close_s = map(float, ended.stdout.split())
    assert p50_s < 0.001
    assert p99_s < 0.1, "a time slice that another program had is no wait for the library's minute"
    assert close_s < 45
    (warning,) = [it for it in events(tmp_path / "r42", "warning") if it["about"] == "wandb"]
    assert warning["message"] == "1500 of 1500 steps are not in W&B"
    assert events(tmp_path / "r42", "run_end")


def test_a_training_that_dies_waits_for_no_library(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "fakes" / "wandb.py").write_text(FAKE.format(log="time.sleep(60)"))
    script = _training("wandb=True", 20).replace("monitor.close()\nprint", "raise ValueError(took_s)\nprint")
    ended = run_to_end(tmp_path / "r42", "began = time.monotonic()\n" + script, environ)
    assert ended.returncode == 1
    (died,) = events(tmp_path / "r42", "exception")
    (told,) = [it for it in events(tmp_path / "r42", "warning") if it["about"] == "wandb"]
    assert told["t"] - died["t"] < 45, "not the library's minute"


def test_what_is_neither_a_folder_nor_true_is_told(tmp_path: Path, environ: dict[str, str]) -> None:
    assert run_to_end(tmp_path / "r42", _training("tensorboard=7, wandb='yes'"), environ).returncode == 0
    told = {it["about"]: it["message"] for it in events(tmp_path / "r42", "warning")}
    assert told["tensorboard"] == "tensorboard is True or a folder, no int"
    assert told["wandb"] == "wandb is True or what wandb.init is given, no str"
