"""The accounts of runs that only their logs tell of; each log is made so that every second is known."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from train_ledger.config import Config
from train_ledger.ledger.accounts import Accounts
from train_ledger.ops.account import account
from train_ledger.run_dir import RunDir

T0 = 1_790_000_000


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs tell local times."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def clock(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S")


def run_of(folder: Path, lines: Iterable[str], written_t: float, name: str = "main.log") -> RunDir:
    """A run directory with this log, written last at `written_t`."""
    path = folder / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    os.utime(path, (written_t, written_t))
    (folder / "run.json").write_text('{"run": "r42", "world_size": 16, "device": "H100"}')
    return RunDir(folder)


def accounts(run_dir: RunDir, at: float) -> Accounts:
    return account(run_dir, Config(), at)


def megatron(step: int, t: float, own_s: float = 10.0) -> str:
    return (
        f" [{clock(t)}] iteration {step:8d}/  500 | consumed samples: {step * 64:12d} |"
        f" elapsed time per iteration (ms): {own_s * 1000:.1f} | learning rate: 3.0E-04 |"
        f" global batch size:    64 | lm loss: 2.5E+00 | loss scale: 1.0 | grad norm: 0.5 |"
        f" number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def test_megatron_leaves_saves_and_evaluations_out_of_its_elapsed_time(tmp_path: Path) -> None:
    lines, t = ["using world size: 16, data-parallel size: 4"], float(T0)
    for step in range(10, 110, 10):
        t += 100
        lines.append(megatron(step, t))
        if step == 50:
            lines.append("saving checkpoint at iteration      50 to /ckpt in torch format")
            t += 40
            lines.append("  successfully saved checkpoint from iteration      50 to /ckpt")
        if step == 80:
            t += 300
            lines.append(" validation loss at iteration 80 | lm loss value: 2.4E+00 | lm loss PPL: 1.1E+01 |")
    found = accounts(run_of(tmp_path, lines, t), t)
    assert found.seconds["productive"] == pytest.approx(10 * 100, abs=2)
    assert found.seconds["checkpoint"] == pytest.approx(40, abs=2)
    assert found.seconds["evaluation"] == pytest.approx(300, abs=2)
    assert found.gpu_hours is not None
    assert sum(found.gpu_hours.values()) == pytest.approx(found.wall_s * 16 / 3600)


def test_megatrons_restart_makes_what_it_did_once_more_rework(tmp_path: Path) -> None:
    lines = [megatron(step, T0 + step * 10) for step in range(10, 90, 10)]
    back_t = T0 + 800 + 600
    lines += [
        "using world size: 16, data-parallel size: 4",
        f"[before the start of training step] datetime: {clock(back_t)}",
        "  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration     50",
    ]
    lines += [megatron(step, back_t + (step - 50) * 10) for step in range(60, 130, 10)]
    end_t = back_t + 700
    found = accounts(run_of(tmp_path, lines, end_t), end_t)
    assert found.seconds["rework"] == pytest.approx(300, abs=2)
    assert found.seconds["productive"] == pytest.approx(1200, abs=102)  # of the first line less is known
    lost_s = found.seconds["unknown"] + found.seconds["down"] + found.seconds["start_up"]
    assert lost_s == pytest.approx(600, abs=102)
    (recovery,) = found.recoveries
    assert (recovery.resumed_step, recovery.redone_steps) == (50, 30)


def test_progress_txt_tells_restarts_and_the_world_size(tmp_path: Path) -> None:
    def told(t: float, gpus: int, what: str, more: str = "") -> str:
        return f"{clock(t)}\tJob ID: 77\t# GPUs: {gpus}\t{what}{more}"

    lines = [megatron(step, T0 + step * 10) for step in range(10, 110, 10)]
    run_dir = run_of(tmp_path, lines, T0 + 1000)
    (tmp_path / "run.json").write_text('{"run": "r42", "device": "H100"}')
    progress = [
        told(T0, 64, "Starting job"),
        told(T0 + 500, 64, "Saved checkpoint", "\tIteration: 50"),
    ]
    run_of_progress = tmp_path / "logs" / "progress.txt"
    run_of_progress.write_text("\n".join(progress) + "\n")
    os.utime(run_of_progress, (T0 + 500, T0 + 500))
    found = accounts(run_dir, T0 + 1000)
    assert found.world_size == 64
    assert found.checkpointing.saves == 1


def titan(t: float, text: str, rank: int = 0) -> str:
    return f"[rank{rank}]:[titan] {clock(t)},000 - root - INFO - {text}"


def titan_step(step: int) -> str:
    return (
        f"step: {step:2d}  loss:  9.50000  grad_norm:  2.2500  memory: 38.50GiB(48.12%)  tps: 3,401"
        "  tflops: 112.50  mfu: 36.06%"
    )


def test_torchtitan_tells_its_saves_its_loads_and_its_mfu(tmp_path: Path) -> None:
    lines, t = [titan(T0, "Training starts at step 1")], float(T0 + 20)
    for step in range(1, 41):
        t += 5
        lines.append(titan(t, titan_step(step)))
        if step == 20:
            lines.append(titan(t, "Saving the checkpoint (or staging if async is enabled)."))
            t += 30
            lines.append(titan(t, "Finished saving the checkpoint in 30.00 seconds."))
    back_t = t + 300
    lines += [titan(back_t, "Loading the checkpoint from /ckpt/step-20.")]
    lines += [titan(back_t + 60, "Finished loading the checkpoint in 60.00 seconds.")]
    lines += [titan(back_t + 60, "Training starts at step 21")]
    t = back_t + 60
    for step in range(21, 61):
        t += 5
        lines.append(titan(t, titan_step(step)))
    found = accounts(run_of(tmp_path, lines, t), t)
    assert found.seconds["rework"] == pytest.approx(20 * 5, abs=2)
    assert found.seconds["productive"] == pytest.approx(60 * 5, abs=6)
    assert found.seconds["checkpoint"] == pytest.approx(30, abs=2)
    assert found.mfu == pytest.approx(36.06, abs=0.01)
    assert found.wall_s == pytest.approx(t - T0, abs=1)
    (recovery,) = found.recoveries
    assert recovery.parts_s["load"] == pytest.approx(60, abs=1)


def deepspeed(step: int, t: float) -> str:
    return (
        f"[{clock(t)},250] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0,"
        " lr=[1.5e-05], mom=[(0.9, 0.95)]"
    )


def test_deepspeed_tells_steps_and_a_stall(tmp_path: Path) -> None:
    lines = [deepspeed(step, T0 + step * 4) for step in range(10, 110, 10)]
    lines += [deepspeed(step, T0 + step * 4 + 900) for step in range(110, 160, 10)]
    end_t = T0 + 150 * 4 + 900
    found = accounts(run_of(tmp_path, lines, end_t), end_t)
    assert found.seconds["stalled"] == pytest.approx(900, abs=2)
    assert found.seconds["productive"] == pytest.approx(150 * 4 - 40, abs=41)


def test_slurm_says_when_it_was_cancelled(tmp_path: Path) -> None:
    lines = [megatron(step, T0 + step * 10) for step in range(10, 60, 10)]
    cancelled_t = T0 + 500 + 1800
    when = clock(cancelled_t).replace(" ", "T")
    lines.append(f"slurmstepd: error: *** STEP 4711.0 ON node037 CANCELLED AT {when} ***")
    found = accounts(run_of(tmp_path, lines, cancelled_t), cancelled_t + 600)
    assert found.seconds["stalled"] == pytest.approx(1800, abs=102)
    assert found.seconds["down"] == pytest.approx(600, abs=2)
    (stop,) = found.interruptions
    assert (stop.step, stop.cause) == (50, "killed")


def test_lines_without_times_say_so(tmp_path: Path) -> None:
    lines = [megatron(step, T0).split("]", 1)[1] for step in range(10, 110, 10)]
    found = accounts(run_of(tmp_path, lines, T0 + 5000), T0 + 5000)
    assert found.steps == 100
    assert any("times" in it for it in found.not_observed)


TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 4', "ValueError: no rows"]
DAY_S = 86_400.0


@pytest.mark.parametrize("late_s", [600.0, 1000 * DAY_S], ids=["as it was written", "a copy"])
def test_a_run_did_not_stand_for_as_long_as_its_log_lay_before_it_was_copied(
    tmp_path: Path, late_s: float
) -> None:
    lines = [megatron(step, T0 + 10.0 * step) for step in range(10, 110, 10)]
    run_dir = run_of(tmp_path, [*lines, *TRACEBACK], T0 + 1000.0 + late_s)
    found = account(run_dir, Config())
    is_copy = late_s > DAY_S
    assert [it.cause for it in found.interruptions] == ["exception: ValueError"]
    assert found.seconds["stalled"] == pytest.approx(0.0 if is_copy else 600.0, abs=60)
    said = [line for line in found.not_observed if line.startswith("when the run ended")]
    assert len(said) == is_copy
    assert not is_copy or "written 1000 days" in said[0]
    assert found.seconds["productive"] == pytest.approx(1000, abs=20)
