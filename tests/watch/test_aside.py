"""Accounts and coverage are made anew while a run goes on; what keeps them from it is said once."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from train_ledger.config import Config
from train_ledger.ops.account import account
from train_ledger.run_dir import RunDir
from train_ledger.watch.aside import Aside, next_pause_s
from waiting import wait_until


def write(run_dir: RunDir, first: int, last: int) -> None:
    run_dir.signals.mkdir(exist_ok=True)
    with run_dir.signals_of(0).open("a") as file:
        for step in range(first, last + 1):
            line = {"t": time.time() - 100 + step, "step": step, "rank": 0, "step_time_s": 1.0}
            file.write(json.dumps(line) + "\n")


def test_they_follow_the_run(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    write(run_dir, 1, 50)
    aside = Aside(run_dir, Config(), lambda _: None, every_s=0.05)
    try:
        wait_until(lambda: aside.accounts is not None and aside.accounts.steps == 50)
        write(run_dir, 51, 60)
        wait_until(lambda: aside.accounts is not None and aside.accounts.steps == 60)
        assert aside.accounts is not None
        assert aside.accounts.spans == ()
        wait_until(lambda: aside.cannot_tell is not None)
        assert any("kernel log" in line for line in aside.cannot_tell or ())
    finally:
        aside.close()


def test_what_keeps_them_from_being_made_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("[]")
    said: list[str] = []
    aside = Aside(RunDir(tmp_path), Config(), said.append, every_s=0.02)
    wait_until(lambda: len(said) == 2)
    time.sleep(0.3)
    aside.close()
    assert [line.partition(":")[0] for line in said] == ["no accounts", "no coverage"]
    assert all("run.json" in line for line in said)
    assert aside.mishaps.lasting == tuple(said)


def test_what_nobody_foresaw_is_told_with_its_place_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = RunDir(tmp_path)
    write(run_dir, 1, 50)
    faulty = [True]

    def account_of(*given: Any) -> Any:
        return {}["x" * 9999] if faulty else account(*given)

    monkeypatch.setattr("train_ledger.watch.aside.account", account_of)
    said: list[str] = []
    aside = Aside(run_dir, Config(), said.append, every_s=0.02)
    try:
        wait_until(lambda: aside.cannot_tell is not None)
        (lasting,) = aside.mishaps.lasting
        assert lasting.startswith("no accounts: KeyError at test_aside.py:")
        assert lasting.endswith("a fault of train-ledger, to be reported; it is tried again")
        assert len(lasting) < 500
        faulty.clear()
        wait_until(lambda: aside.accounts is not None)
        wait_until(lambda: aside.mishaps.lasting == ())
        assert said == [lasting]
    finally:
        aside.close()


def test_of_a_run_that_begins_they_are_made_soon_again() -> None:
    """What was not told within its first seconds does not stand there for a minute as what is missing."""
    pauses = [5.0]
    for _ in range(5):
        pauses.append(next_pause_s(pauses[-1], every_s=60.0, took_s=0.02))
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    assert next_pause_s(5.0, every_s=60.0, took_s=4.0) == 200.0
