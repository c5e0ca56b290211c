"""Accounts are made anew while a run goes on, and what keeps them from being made is said once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from train_ledger.config import Config
from train_ledger.run_dir import RunDir
from train_ledger.watch.accounts_keeping import AccountsKeeping


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def write(run_dir: RunDir, first: int, last: int) -> None:
    run_dir.signals.mkdir(exist_ok=True)
    with run_dir.signals_of(0).open("a") as file:
        for step in range(first, last + 1):
            line = {"t": time.time() - 100 + step, "step": step, "rank": 0, "step_time_s": 1.0}
            file.write(json.dumps(line) + "\n")


def test_they_follow_the_run(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    write(run_dir, 1, 50)
    keeping = AccountsKeeping(run_dir, Config(), lambda _: None, every_s=0.05)
    try:
        wait_until(lambda: keeping.newest is not None and keeping.newest.steps == 50)
        write(run_dir, 51, 60)
        wait_until(lambda: keeping.newest is not None and keeping.newest.steps == 60)
        assert keeping.newest is not None
        assert keeping.newest.spans == ()
    finally:
        keeping.close()


def test_what_keeps_them_from_being_made_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("[]")
    said: list[str] = []
    keeping = AccountsKeeping(RunDir(tmp_path), Config(), said.append, every_s=0.02)
    wait_until(lambda: bool(said))
    time.sleep(0.3)
    keeping.close()
    assert len(said) == 1
    assert "run.json" in said[0]
