"""What TensorBoard itself reads back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from train_ledger.signals.integrations.tensorboard import tensorboard_writer

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def _write(folder: Path, attempt: int, steps: range, **fields: float) -> list[str]:
    warnings: list[str] = []
    writer = tensorboard_writer(folder, attempt, lambda about, message: warnings.append(message))
    writer.start()
    for step in steps:
        writer.put(step, 1000.0 + step, {"loss": 1.0 / (step + 1), **fields})
    writer.wait()
    return warnings


def _scalars(folder: Path, tag: str) -> list[tuple[int, float, float]]:
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return [(it.step, it.wall_time, it.value) for it in events.Scalars(tag)]


def test_every_step_of_every_attempt_is_there(tmp_path: Path) -> None:
    assert _write(tmp_path, 0, range(12), lr=1e-3) == []
    assert _write(tmp_path, 1, range(8, 14), lr=1e-3) == []
    first, second = (
        _scalars(tmp_path / "attempt_0", "train/loss"),
        _scalars(tmp_path / "attempt_1", "train/loss"),
    )
    assert [step for step, _, _ in first] == list(range(12))
    assert [step for step, _, _ in second] == list(range(8, 14))
    assert first[3] == (3, 1003.0, 0.25)
    assert len(_scalars(tmp_path / "attempt_1", "train/lr")) == 6


def test_numbers_that_are_none_for_json_arrive(tmp_path: Path) -> None:
    assert _write(tmp_path, 0, range(1), nan=float("nan"), inf=float("inf"), huge=10**400) == []
    assert str(_scalars(tmp_path / "attempt_0", "train/nan")[0][2]) == "nan"
    assert _scalars(tmp_path / "attempt_0", "train/inf")[0][2] == float("inf")
    assert _scalars(tmp_path / "attempt_0", "train/huge")[0][2] == float("inf")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warnings = _write(tmp_path / "file", 0, range(3))
    assert "Not a directory" in warnings[0]
    assert warnings[-1] == "3 of 3 steps are not in TensorBoard"


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting needs root")
    try:
        warnings = _write(tmp_path, 0, range(5000), **{f"field_{n}": float(n) for n in range(20)})
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=False)
    assert any("No space left on device" in it for it in warnings)
    assert warnings[-1].endswith("steps are not in TensorBoard")
