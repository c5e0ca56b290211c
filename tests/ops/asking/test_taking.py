"""Traces are taken of the same steps of all ranks, and not while somebody else asks."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from train_ledger.ops.asking.taking import first_step, is_asked, take
from train_ledger.run_dir import RunDir


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    found = RunDir(tmp_path)
    found.requests.mkdir()
    found.signals.mkdir()
    return found


def signals(run_dir: RunDir, rank: int, *lines: dict[str, object]) -> None:
    run_dir.signals_of(rank).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_ranks_hear_of_it_before_they_reach_the_step(run_dir: RunDir) -> None:
    signals(run_dir, 0, {"step": 40, "step_time_s": 2.0}, {"event": "phase_start", "step": 90})
    signals(run_dir, 1, {"step": 42, "step_time_s": 2.0})
    assert first_step(run_dir, [0, 1, 2]) == 42 + 1 + 2
    signals(run_dir, 1, {"step": 1000, "step_time_s": 0.01}, {"step": "x"})
    assert first_step(run_dir, [1]) == 1000 + 1 + 400
    assert first_step(run_dir, [7]) is None


def test_what_is_asked_of_the_ranks(run_dir: RunDir) -> None:
    signals(run_dir, 3, {"step": 5, "step_time_s": 60.0})

    def answer() -> None:
        while not run_dir.request("taken-1").exists():
            time.sleep(0.01)
        run_dir.reply("taken-1", 3).write_text(json.dumps({"ok": True, "path": "/traces/rank_3.json.gz"}))

    threading.Thread(target=answer).start()
    taken = take(run_dir, "taken-1", [3], steps=2, wait_s=20.0)
    assert (dict(taken.answers.files), taken.first_step) == ({3: Path("/traces/rank_3.json.gz")}, 7)
    asked = json.loads(run_dir.request("taken-1").read_text())
    assert (asked["do"], asked["steps"], asked["first_step"], asked["folder"], asked["ranks"]) == (
        "profile", 2, 7, "taken-1", [3],
    )  # fmt: skip


def test_a_request_that_is_open(run_dir: RunDir) -> None:
    now = time.time()
    assert not is_asked(run_dir, now)
    run_dir.request("stacks-1").write_text(json.dumps({"do": "stacks", "ranks": [0, 1]}))
    assert is_asked(run_dir, now)
    run_dir.reply("stacks-1", 0).write_text("{}")
    assert is_asked(run_dir, now)
    run_dir.reply("stacks-1", 1).write_text("{}")
    assert not is_asked(run_dir, now)
    run_dir.request("of-all").write_text(json.dumps({"do": "dump", "ranks": None}))
    assert is_asked(run_dir, now)
    os.utime(run_dir.request("of-all"), (now - 700, now - 700))
    assert not is_asked(run_dir, now), "ten minutes are enough to answer"
