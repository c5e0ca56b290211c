"""A log whose lines carry no time is judged by who followed it, or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.run_dir import RunDir
from train_ledger.watch import Keeper
from train_ledger.watch.clock import RunClock
from train_ledger.watch.console import Console


def printed(step: int) -> str:
    """torchtitan's line without the front that tells the time."""
    return f"step: {step:2d}  loss:  4.{step:04d}  grad_norm:  1.2000  memory: 10.00GiB(12.50%)\n"


class Followed:
    """A log that grows by a line every `step_s`, until `since_t`, and a keeper that looks on till now."""

    def __init__(self, path: Path, *, stands_s: float, step_s: float = 2.0) -> None:
        self.run = RunDir(path)
        self.now_t = time.time()
        self.t = self.since_t = self.now_t - stands_s
        self.log = self.run.logs / "train.log"
        self.log.parent.mkdir(parents=True)
        self.keeper = Keeper(self.run, Config(), Console(lambda line: None), RunClock(lambda: self.t))
        for step in range(1, 41):
            self.write(step, self.since_t - (40 - step) * step_s)
        while self.t < self.now_t:
            self.t += 10.0
            self.keeper.turn()

    def write(self, step: int, t: float) -> None:
        with self.log.open("a") as file:
            file.write(printed(step))
        os.utime(self.log, (t, t))
        self.t = t
        self.keeper.turn()


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    made = Followed(tmp_path / "r42", stands_s=300.0)
    yield made
    made.keeper.close()


def test_the_stall_that_was_paged_is_the_state_of_the_run(followed: Followed) -> None:
    assert [it.name for it in followed.keeper.open_alerts] == ["TrainingStepStalled"]
    found = diagnose(followed.run, Config())
    assert (found.state, found.cause, found.ranks, found.since_step) == ("stalled", "unknown", (), 40)
    assert found.since_t == pytest.approx(followed.since_t, abs=3)
    assert found.evidence[0].startswith("journal: incident ")
    assert "1800" not in " ".join(found.evidence)


def test_a_stall_is_over_where_the_log_was_written_since(followed: Followed) -> None:
    followed.keeper.close()
    with followed.log.open("a") as file:
        file.write(printed(41))
    found = diagnose(followed.run, Config())
    assert (found.state, found.cause) == ("running", "none")


def test_without_a_keeper_it_cannot_be_told(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "r42")
    run.logs.mkdir(parents=True)
    log = run.logs / "train.log"
    log.write_text("".join(map(printed, range(1, 41))))
    os.utime(log, (time.time() - 300, time.time() - 300))
    found = diagnose(run, Config())
    assert (found.cause, found.confidence) == ("unknown", "low")
    assert found.not_observed[0].startswith("the log's lines carry no time")
    os.utime(log)
    assert diagnose(run, Config()).cause == "none"


def test_what_was_paged_later_was_not_known_then(followed: Followed) -> None:
    assert diagnose(followed.run, Config(), at=followed.since_t + 30).state == "running"
