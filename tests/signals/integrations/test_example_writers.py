"""examples/tensorboard_and_wandb.py does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "tensorboard_and_wandb.py"


@pytest.mark.slow
def test_both_attempts_are_in_both(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    pytest.importorskip("wandb")
    environ = {**os.environ, "WANDB_MODE": "offline"}
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, str(EXAMPLE), str(tmp_path / "r")], env=environ, timeout=180, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert (ended.returncode, ended.stderr) == (0, "")
    for attempt, first in ((0, 0), (1, 50)):
        events = accumulator.EventAccumulator(str(tmp_path / "r" / "tensorboard" / f"attempt_{attempt}"))
        events.Reload()
        assert [it.step for it in events.Scalars("train/loss")] == list(range(first, first + 100))
    assert len(list((tmp_path / "r" / "wandb").glob("offline-run-*/*.wandb"))) == 2
