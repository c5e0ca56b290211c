"""A day is judged again within a minute."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.dash.backtest import backtest


@pytest.mark.slow
def test_a_day_of_sixteen_ranks_takes_a_minute_of_one_core_at_most(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "r42", steps=8600, step_time_s=10.0, checkpoint_every=360)
    began_s = time.process_time()
    tested = backtest(job.run_dir, Config())
    assert time.process_time() - began_s <= 60
    assert tested.hours > 24
    assert tested.is_right
