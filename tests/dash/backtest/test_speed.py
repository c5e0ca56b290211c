"""A day is judged again within a minute."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from train_ledger.chaos import fleet


@pytest.mark.slow
def test_a_day_of_sixteen_ranks_takes_a_minute_of_one_core_at_most(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "r42", steps=8600, step_time_s=10.0, checkpoint_every=360)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # In a process of its own: what counts the lines that tests come through makes this one slower.
    answer = subprocess.run(
        [sys.executable, "-m", "train_ledger", "backtest", str(job.run_dir.path), "--json"],
        capture_output=True,
        check=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime <= 60
    told = json.loads(answer.stdout)
    assert (told["missed"], told["false_pages"]) == ([], [])
    assert told["totals"]["hours"] > 24
