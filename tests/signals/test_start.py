"""Three lines in a training script, and what they leave in the run directory."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import train_ledger
from signals.scripts import begin, events, ready, run_to_end, signal_lines, wait_for
from train_ledger.fields import EVENTS, FIELDS, REQUIRED
from train_ledger.run_dir import RunDir

RANK_3_OF_8 = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}


def test_run_start_says_who_this_is(tmp_path: Path) -> None:
    assert run_to_end(tmp_path, "", RANK_3_OF_8).returncode == 0
    (told,) = [line for line in signal_lines(tmp_path, rank=3) if line.get("event") == "run_start"]
    assert (told["rank"], told["world_size"], told["local_rank"]) == (3, 8, 1)
    assert told["host"] == socket.gethostname()
    assert isinstance(told["pid"], int)
    assert told["attempt"] == 0


def test_a_line_of_a_step_holds_what_was_measured(tmp_path: Path) -> None:
    script = """
monitor.close()
model = {"params": 1e6, "layers": 2, "heads": 2, "head_dim": 8, "seq_len": 16}
monitor = train_ledger.start(monitor.run_dir.path, model=model, parallelism={"tp": 2}, peak_flops=1e12)
import gc
while not monitor._measures.host.fields: time.sleep(0.02)  # looked at once a second
for step in range(2):
    with monitor.phase("data"):
        time.sleep(0.01)
    with monitor.phase("forward"):
        time.sleep(0.02)
    gc.collect()
    monitor.log(grad_norm=0.5)
    monitor.step(step, tokens=1000, loss=2.5)
monitor.log(step=2, loss=9.0)
monitor.log(lr=0.25)
"""
    assert run_to_end(tmp_path, script).returncode == 0
    steps = [line for line in signal_lines(tmp_path) if "event" not in line]
    first, second, third, last = steps
    assert "step_time_s" not in first  # what came before the first step was the start-up
    assert 0.01 <= second["data_wait_s"] < second["step_time_s"]
    assert 0.02 <= second["fwd_s"] < second["step_time_s"] < 60
    assert second["tps"] == pytest.approx(1000 / second["step_time_s"] / 2)
    assert second["mfu"] == pytest.approx(100 * second["tflops"])
    assert second["gc_s"] > 0
    assert second["rss_bytes"] > 1e6
    assert second["cpu_percent"] >= 0
    assert (second["loss"], second["grad_norm"]) == (2.5, 0.5)
    assert (third["step"], third["loss"]) == (2, 9.0)
    assert (last["step"], last["lr"]) == (1, 0.25)
    known = {*FIELDS, *REQUIRED, "attempt"}
    assert all(line.keys() <= known for line in steps)


def test_run_json_is_made_by_rank_0_and_keeps_what_others_wrote(tmp_path: Path) -> None:
    run_to_end(tmp_path, "", RANK_3_OF_8)
    assert not (tmp_path / "run.json").exists()
    (tmp_path / "run.json").write_text('{"contacts": "ada", "started": 17.0, "world_size": 4}')
    again = (
        "monitor.close(); train_ledger.start(monitor.run_dir.path, gpu_price_per_hour=2.5, dtype=object())"
    )
    run_to_end(tmp_path, again, {"RANK": "0", "WORLD_SIZE": "8"})
    written = json.loads((tmp_path / "run.json").read_bytes())
    assert written == {
        "contacts": "ada",
        "started": 17.0,
        "run": tmp_path.name,
        "world_size": 8,
        "gpu_price_per_hour": 2.5,
        "dtype": "object",
    }


def test_every_start_is_an_attempt_of_its_own(tmp_path: Path) -> None:
    for attempt in range(2):
        run_to_end(tmp_path, "print(monitor.attempt)")
        assert [line["attempt"] for line in events(tmp_path, "run_start")][-1] == attempt
    ended = run_to_end(tmp_path, "print(monitor.attempt)", {"TORCHELASTIC_RESTART_COUNT": "7"})
    assert ended.stdout == "7\n"
    assert (tmp_path / "comm_traces" / "attempt_7").is_dir()


def test_a_checkpoint_an_evaluation_and_a_load(tmp_path: Path) -> None:
    script = """
with monitor.checkpoint_load() as load:
    load.step = 40
monitor.step(41)
with monitor.checkpoint(41):
    time.sleep(0.02)
with monitor.checkpoint(42, asynchronous=True) as save:
    time.sleep(0.01)
time.sleep(0.05)
save.saved()
try:
    with monitor.checkpoint(43):
        raise OSError("no space left on device")
except OSError:
    pass
with monitor.evaluation():
    pass
monitor.step(42)
"""
    assert run_to_end(tmp_path, script).returncode == 0
    told = [(line["event"], line.get("phase", line.get("step"))) for line in events(tmp_path)]
    assert told[2:] == [
        ("phase_start", "checkpoint_load"),
        ("phase_end", "checkpoint_load"),
        ("ckpt_loaded", 40),
        ("phase_end", "start_up"),
        ("ckpt_start", 41),
        ("phase_start", "checkpoint_save"),
        ("phase_end", "checkpoint_save"),
        ("ckpt_saved", 41),
        ("ckpt_start", 42),
        ("phase_start", "checkpoint_save"),
        ("phase_end", "checkpoint_save"),
        ("ckpt_saved", 42),
        ("ckpt_start", 43),
        ("phase_start", "checkpoint_save"),
        ("phase_end", "checkpoint_save"),
        ("ckpt_failed", 43),
        ("eval_start", None),
        ("phase_start", "evaluation"),
        ("phase_end", "evaluation"),
        ("eval_end", None),
        ("run_end", None),
    ]
    assert {line["event"] for line in events(tmp_path)} <= set(EVENTS)
    at_once, later = events(tmp_path, "ckpt_saved")
    assert at_once["duration_s"] >= at_once["blocking_s"] >= 0.02
    assert later["duration_s"] > later["blocking_s"] + 0.04
    assert later["durable"] is True
    (failed,) = events(tmp_path, "ckpt_failed")
    assert failed["error"] == "OSError: no space left on device"
    (step,) = [line for line in signal_lines(tmp_path) if "ckpt_s" in line]
    assert step["ckpt_s"] >= 0.03  # the blocking parts of all three


def test_a_rank_that_hangs_in_a_phase_shows_it(tmp_path: Path) -> None:
    in_phase = "print('there', flush=True)\n    time.sleep(600)"
    script = f"monitor.step(1)\nwith monitor.phase('backward'):\n    {in_phase}"
    process = begin(tmp_path, script)
    try:
        ready(process)
        wait_for(lambda: events(tmp_path, "phase_start")[-1]["phase"] == "backward")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("place", ["/proc/1/train-ledger", "{tmp}/file/run"])
def test_a_run_directory_that_cannot_be_written_is_said_in_one_line(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("in the way")
    script = "time.sleep(0.6)\nfor step in range(3): monitor.step(step, loss=1.0)\nprint('trained')"
    ended = run_to_end(Path(place.format(tmp=tmp_path)), script)
    assert (ended.returncode, ended.stdout) == (0, "trained\n")
    (said,) = ended.stderr.splitlines()
    assert said.startswith("train-ledger: rank 0: ")


def test_nothing_a_training_script_says_raises(tmp_path: Path) -> None:
    script = """
nonsense = object()
monitor.step(nonsense, loss=nonsense)
monitor.step(1, tokens=nonsense, rank=5, t="now", attempt=None)
monitor.step(2, **{"": 1.0, "a b": 2.0, "\\ud800": 3.0})
monitor.log(loss=nonsense)
monitor.log(step=nonsense)
with monitor.phase(nonsense): pass
with monitor.checkpoint(nonsense): pass
monitor.event("warning", about=nonsense)
monitor.close()
monitor.close()
monitor.step(3)
monitor.event("warning")
with monitor.phase("forward"): pass
print("trained")
"""
    ended = run_to_end(tmp_path, script)
    assert (ended.returncode, ended.stdout) == (0, "trained\n")
    assert [line["step"] for line in signal_lines(tmp_path) if "event" not in line] == [1, 2]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ('peak_flops="989e12"', "peak_flops"),
        ("peak_flops=10**400", "peak_flops"),
        ('parallelism={"tp": 10**400}', "tp"),
        ('parallelism="tp8"', "parallelism"),
        ('model={**model, "params": 10**400}', "params"),
        ("model=[1]", "model"),
        ('rank="3"', "rank"),
        ("world_size=10**400", "world_size"),
    ],
)
def test_a_figure_that_is_no_number_is_refused_with_one_warning(
    tmp_path: Path, given: str, named: str
) -> None:
    script = f"""
monitor.close()
model = {{"params": 1e6, "layers": 2, "heads": 2, "head_dim": 8, "seq_len": 16}}
monitor = train_ledger.start(monitor.run_dir.path, **dict(dict(model=model), {given}))
for step in range(3):
    monitor.step(step, tokens=1000)
print("trained")
"""
    script = script.replace("**dict(dict(model=model), model=", "**dict(model=")
    ended = run_to_end(tmp_path, script.replace("{**model", "{**model"))
    assert ended.returncode == 0, ended.stderr
    (warning,) = events(tmp_path, "warning")
    assert warning["message"].startswith(f"{named} given to start() cannot be used")
    assert len([line for line in signal_lines(tmp_path) if "event" not in line]) == 3


def test_tokens_beyond_a_float_are_refused_with_one_warning(tmp_path: Path) -> None:
    script = "for step in range(3):\n    monitor.step(step, tokens=10**400)"
    assert run_to_end(tmp_path, script).returncode == 0
    (warning,) = events(tmp_path, "warning")
    assert "tokens given to step()" in warning["message"]


def test_numbers_of_numpy_are_as_good(tmp_path: Path) -> None:
    script = """
import numpy
monitor.close()
monitor = train_ledger.start(monitor.run_dir.path, rank=numpy.int64(2), world_size=numpy.int32(4))
monitor.step(numpy.int64(3), loss=numpy.float32(0.5))
assert type(monitor.last_step) is int
with monitor.checkpoint(numpy.int64(3)):
    pass
"""
    ended = run_to_end(tmp_path, script)
    assert ended.returncode == 0, ended.stderr
    (step,) = [line for line in signal_lines(tmp_path, 2) if "event" not in line]
    assert (step["step"], step["rank"], step["loss"]) == (3, 2, 0.5)
    assert [line["step"] for line in signal_lines(tmp_path, 2) if line.get("event") == "ckpt_saved"] == [3]


def test_a_tensor_is_no_step(tmp_path: Path) -> None:
    script = """
import torch
monitor.step(1)
torch.Tensor.__index__ = lambda tensor: os.abort()
monitor.step(torch.tensor(2))
assert monitor.last_step == 1
monitor.step(3)
"""
    ended = run_to_end(tmp_path, script)
    assert ended.returncode == 0
    assert ended.stderr.count("step: a Tensor is no whole number") == 1
    assert [line["step"] for line in signal_lines(tmp_path) if "event" not in line] == [1, 3]


def test_an_error_that_cannot_say_itself_does_not_hurt_a_checkpoint(tmp_path: Path) -> None:
    script = """
class Broken(Exception):
    def __str__(self):
        raise KeyError
try:
    with monitor.checkpoint(1):
        raise Broken
except Broken:
    print("trained")
with monitor.checkpoint(2, asynchronous=True) as save:
    save.failed(type("Mute", (), {"__str__": Broken.__str__})())
"""
    ended = run_to_end(tmp_path, script)
    assert (ended.returncode, ended.stdout) == (0, "trained\n")
    assert len(events(tmp_path, "ckpt_failed")) == 2


def test_what_the_environment_loses_is_told_to_the_run(tmp_path: Path) -> None:
    run_to_end(tmp_path, "", {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_INCLUDE_ONLY_ACTIVE": "1"})
    told = {line["about"]: line["message"] for line in events(tmp_path, "warning")}
    assert "was replaced by 3" in told["TORCH_NCCL_ASYNC_ERROR_HANDLING"]
    assert "TORCH_INCLUDE_ONLY_ACTIVE" in told


def test_the_documented_example(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        """
import train_ledger

monitor = train_ledger.start("runs/r42")
for step in range(3):
    monitor.step(step, loss=1.0 / (step + 1))
"""
    )
    subprocess.run([sys.executable, script], cwd=tmp_path, check=True, timeout=120)
    lines: list[dict[str, Any]] = signal_lines(tmp_path / "runs" / "r42")
    assert [line["loss"] for line in lines if "loss" in line] == [1.0, 0.5, 1 / 3]


def test_a_dead_file_server_holds_the_start_up_for_seconds_only(tmp_path: Path) -> None:
    script = f"""
import time
import sys
import train_ledger.signals
start = sys.modules["train_ledger.signals.start"]
start._PATIENCE_S = 0.2
start._prepare = lambda place, me: time.sleep(60)
monitor = start.start({str(tmp_path)!r})
monitor.step(1)
print("trained")
"""
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ),
        check=True,
    )
    assert time.monotonic() - began < 45
    assert ended.stdout == "trained\n"
    assert "does not answer" in ended.stderr


def test_sigterm_while_the_start_up_lasts(tmp_path: Path) -> None:
    process = begin(tmp_path, "print('there', flush=True)\ntime.sleep(60)")
    ready(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    assert [line["event"] for line in events(tmp_path)] == ["run_start", "phase_start", "signal"]


def test_constants_go_into_run_json_and_a_slip_in_a_key_is_told(tmp_path: Path) -> None:
    given = {"grad_clip": 1.0, "restart_command": "sbatch run.sh", "gpu_price_per_hr": 2.5, "colour": "red"}
    train_ledger.start(tmp_path, run="big", **given).close()
    written = RunDir(tmp_path).read_run()
    assert {"run": "big", **given}.items() <= written.items()
    told = [line["message"] for line in signal_lines(tmp_path) if line.get("about") == "start"]
    assert told == [
        "gpu_price_per_hr given to start() is put into run.json, but nobody reads it; gpu_price_per_hour?"
    ]


def test_the_trainings_own_position_goes_on_over_a_restart(tmp_path: Path) -> None:
    for first in (0, 3):
        monitor = train_ledger.start(tmp_path)
        for step in range(first, first + 3):
            monitor.step(step, consumed_samples=(step + 1) * 64)
        monitor.close()
    lines = [line for line in signal_lines(tmp_path) if "consumed_samples" in line]
    assert [line["attempt"] for line in lines] == [0, 0, 0, 1, 1, 1]
    assert [line["consumed_samples"] for line in lines] == [64, 128, 192, 256, 320, 384]


def test_the_file_rotates_as_start_was_told(tmp_path: Path) -> None:
    monitor = train_ledger.start(tmp_path, rotate_bytes=1, rotate_keep=1, collectives=False)
    for step in range(3):
        monitor.step(step)
        assert monitor.logger.flush(60)
    monitor.close()
    names = sorted(path.name for _, path in RunDir(tmp_path).signal_files())
    assert names == ["rank_00000.jsonl", "rank_00000.jsonl.1"]


def test_a_monitor_that_is_closed_is_not_kept(tmp_path: Path) -> None:
    script = """
import gc
from train_ledger.signals.monitor import Monitor
for _ in range(5):
    monitor = train_ledger.start(monitor.run_dir.path)
    monitor.step(1)
    monitor.close()
gc.collect()
print(sum(type(it) is Monitor for it in gc.get_objects()))
"""
    assert run_to_end(tmp_path, script).stdout.split() == ["1"]


def test_a_metric_may_have_the_name_of_an_argument(tmp_path: Path) -> None:
    """A trainer's dictionary of metrics is its own: `n` in it is no step."""
    run_to_end(tmp_path, 'monitor.step(3, **{"n": 7.0, "loss": 2.5})\n')
    (line,) = [it for it in signal_lines(tmp_path) if "loss" in it]
    assert (line["step"], line["n"]) == (3, 7.0)
