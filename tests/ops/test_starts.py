"""Starts that stand in the middle of long files are found, and are looked for only where some are missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ops.cascades import Ranks
from train_ledger.config import Config
from train_ledger.ops import starts
from train_ledger.ops.observing import observe
from train_ledger.run_dir import RunDir


def restarted(run: RunDir, times: int) -> Ranks:
    run.path.mkdir()
    ranks = Ranks(run, 2)
    ranks.start()
    for attempt in range(1, times + 1):
        ranks.steps(3)
        ranks.t += 60
        ranks.start(attempt, ranks.step)
    ranks.steps(3)
    return ranks


def test_a_start_that_was_not_read_is_found(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "r42")
    ranks = restarted(run, 4)
    state, _ = observe(run, Config(), ranks.t)
    missing = replace(state, attempts=(state.attempts[0], state.attempts[-1]))
    found = starts.with_all_starts(run, missing)
    assert [it.number for it in found.attempts] == [0, 1, 2, 3, 4]
    assert [it.started_t for it in found.attempts] == [it.started_t for it in state.attempts]


def test_where_no_start_is_missing_no_file_is_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDir(tmp_path / "r42")
    ranks = restarted(run, 2)
    state, _ = observe(run, Config(), ranks.t)

    def not_here(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(starts, "events_told", not_here)
    assert starts.with_all_starts(run, state) is state
