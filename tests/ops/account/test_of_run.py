"""The accounts of run directories: the seed's own example, the keeper's word, and what is not there."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from train_ledger.config import Config
from train_ledger.ledger.accounts import Accounts
from train_ledger.ops.account import account, answer_of
from train_ledger.run_dir import RunDir

STEP_S = 4.75
WORLD_SIZE = 1024


def at(clock: str) -> float:
    return datetime.fromisoformat(f"2026-11-30T{clock}+00:00").timestamp()


class Writer:
    """Two ranks that stand for a thousand and the keeper beside them."""

    def __init__(self, folder: Path) -> None:
        self.run_dir = RunDir(folder)
        folder.mkdir()
        self.lines: dict[int, list[str]] = {0: [], 1: []}
        self.journal: list[str] = []
        run = {"run": "run42", "world_size": WORLD_SIZE, "device": "H100", "gpu_price_per_hour": 2.5}
        (folder / "run.json").write_text(json.dumps(run))

    def say(self, t: float, **keys: Any) -> None:
        for rank, lines in self.lines.items():
            lines.append(json.dumps({"t": round(t, 3), "rank": rank, **keys}))

    def steps(self, first: int, last: int, end_t: float, attempt: int) -> None:
        for step in range(first, last + 1):
            t = end_t - (last - step) * STEP_S
            self.say(
                t, step=step, attempt=attempt, loss=2.0, step_time_s=STEP_S, consumed_samples=step * 2048
            )

    def keep(self, t: float, kind: str, **keys: Any) -> None:
        self.journal.append(json.dumps({"t": t, "kind": kind, **keys}))

    def written(self) -> RunDir:
        self.run_dir.signals.mkdir()
        for rank, lines in self.lines.items():
            self.run_dir.signals_of(rank).write_text("\n".join(lines) + "\n")
        if self.journal:
            self.run_dir.ledger.mkdir()
            self.run_dir.journal.write_text("\n".join(self.journal) + "\n")
        return self.run_dir


def seeds_own(folder: Path, *, kept: bool = True) -> RunDir:
    """Run42 of the article, chapter 6.3: its page, its dumps, its decision, its restart, its 300 steps."""
    run = Writer(folder)
    stopped_t, back_t = at("02:58:40"), at("03:41:00")
    first_t = stopped_t - 2000 * STEP_S
    run.say(first_t - 60, event="run_start", attempt=0, world_size=WORLD_SIZE, host="node001", pid=1, gpu=0)
    saved_t = stopped_t - 300 * STEP_S
    run.steps(49_301, 51_000, saved_t, 0)
    saved = {"step": 51_000, "duration_s": 45, "blocking_s": 0.5, "durable": True}
    run.say(saved_t + 0.5, event="ckpt_saved", attempt=0, **saved)
    run.steps(51_001, 51_300, stopped_t, 0)
    run.say(at("03:09:05"), event="signal", attempt=0, number=15)
    run.say(at("03:17:00"), event="run_start", attempt=1, world_size=WORLD_SIZE, host="node001", pid=9, gpu=0)
    run.say(at("03:17:00"), event="phase_start", attempt=1, phase="checkpoint_load")
    run.say(at("03:24:00"), event="phase_end", attempt=1, phase="checkpoint_load")
    run.say(at("03:24:00"), event="ckpt_loaded", attempt=1, step=51_000, duration_s=420)
    first_again_t = back_t + STEP_S
    run.steps(51_001, 51_400, first_again_t + 399 * STEP_S, 1)
    if kept:
        run.keep(at("03:00:20"), "incident_opened", incident="1", alert="TrainingStepStalled", record={})
        run.keep(at("03:00:25"), "response_started", incident="1", living=1023)
        run.keep(at("03:01:35"), "response_done", incident="1", summary="1024 dumps")
    run_dir = run.written()
    logs = folder / "logs"
    logs.mkdir()
    (logs / "torchrun.log").write_text(
        "W1130 03:09:00.000000 100 torch/distributed/elastic/agent/server/api.py:900] [default] Worker group"
        " FAILED. 3/3 attempts left; will restart worker group\n"
    )
    return run_dir


@pytest.fixture
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def accounts(run_dir: RunDir, clock: str) -> Accounts:
    return account(run_dir, Config(), at(clock))


@pytest.mark.usefixtures("_in_utc")
def test_the_articles_own_example_is_67_minutes_and_1143_gpu_hours(tmp_path: Path) -> None:
    found = accounts(seeds_own(tmp_path / "run42"), "04:12:00")
    lost: Mapping[str, float] = {
        category: found.seconds[category] for category in ("stalled", "down", "start_up", "rework")
    }
    stood_s = lost["stalled"] + lost["down"] + lost["start_up"] - 60  # the first start's own minute
    assert stood_s / 60 == pytest.approx(42.33, abs=0.1)  # 02:58:40 to 03:41
    assert lost["rework"] / 60 == pytest.approx(300 * STEP_S / 60, abs=0.1)
    assert round((stood_s + lost["rework"]) / 60) in (66, 67)
    assert (stood_s + lost["rework"]) * WORLD_SIZE / 3600 == pytest.approx(1143, rel=0.02)


@pytest.mark.usefixtures("_in_utc")
def test_its_recovery_is_split_as_the_article_splits_it(tmp_path: Path) -> None:
    (recovery,) = accounts(seeds_own(tmp_path / "run42"), "04:12:00").recoveries
    minutes = {part: None if s is None else round(s / 60, 1) for part, s in recovery.parts_s.items()}
    assert minutes["detect"] == 1.7  # 02:58:40 to 03:00:20: a hundred seconds
    assert minutes["dump"] == 1.2
    assert minutes["decide"] == 7.4
    assert minutes["restart"] == 8.0
    assert minutes["load"] == 7.0
    assert minutes["redo"] == pytest.approx(17 + 300 * STEP_S / 60, abs=0.1)
    assert (recovery.resumed_step, recovery.redone_steps) == (51_000, 300)
    assert recovery.loss_joins_on is True
    assert recovery.data_agrees is True


def test_without_a_keeper_nobody_tells_when_it_was_noticed(tmp_path: Path) -> None:
    run_dir = seeds_own(tmp_path / "run42", kept=False)
    (run_dir.logs / "torchrun.log").unlink()
    (recovery,) = accounts(run_dir, "04:12:00").recoveries
    told = {part for part, s in recovery.parts_s.items() if s is not None}
    assert told == {"load", "redo"}


def test_as_known_during_the_hang_it_stands_and_has_lost_nothing_yet(tmp_path: Path) -> None:
    found = accounts(seeds_own(tmp_path / "run42"), "03:05:00")
    assert found.seconds["stalled"] == at("03:05:00") - at("02:58:40")
    assert found.seconds["rework"] == 0
    assert found.recoveries == ()


def test_what_was_before_since_is_left_out(tmp_path: Path) -> None:
    run_dir = seeds_own(tmp_path / "run42")
    found = account(run_dir, Config(), at("03:05:00"), since=at("02:50:00"))
    assert found.wall_s == 900
    assert found.seconds["productive"] == pytest.approx(520, abs=1)


def test_the_json_answer_has_its_schema_and_its_sums(tmp_path: Path) -> None:
    answer = answer_of(accounts(seeds_own(tmp_path / "run42"), "04:12:00"))
    assert next(iter(answer)) == "schema"
    assert answer["schema"] == 1
    assert round(sum(answer["seconds"].values()), 6) == answer["wall_s"]
    assert sum(answer["share"].values()) == pytest.approx(1)
    assert answer["cost"] == pytest.approx(sum(answer["gpu_hours"].values()) * 2.5)


def test_of_an_empty_run_nothing_can_be_told(tmp_path: Path) -> None:
    found = account(RunDir(tmp_path), Config(), 1_790_000_000.0)
    assert found.wall_s == 0
    assert found.not_observed


def test_a_run_that_was_left_long_ago_ends_with_its_last_line(tmp_path: Path) -> None:
    run = Writer(tmp_path / "old")
    run.say(1_600_000_000, event="run_start", attempt=0, world_size=2, pid=1)
    for step in range(1, 20):
        run.say(1_600_000_000 + step, step=step, attempt=0, step_time_s=1.0)
    found = account(run.written(), Config())
    assert found.until_t == 1_600_000_019
    assert any("more than a day old" in it for it in found.not_observed)


def test_ranks_without_gpus_have_no_gpu_hours(tmp_path: Path) -> None:
    run = Writer(tmp_path / "cpu")
    (run.run_dir.run_json).write_text('{"run": "cpu", "device": "cpu", "world_size": 2}')
    run.say(1_600_000_000, event="run_start", attempt=0, world_size=2, pid=1)
    run.say(1_600_000_001, step=1, attempt=0)
    found = account(run.written(), Config(), 1_600_000_002.0)
    assert (found.gpu_hours, found.cost) == (None, None)


def test_a_bad_line_is_told(tmp_path: Path) -> None:
    run = Writer(tmp_path / "bad")
    run.say(1_600_000_000, event="run_start", attempt=0, world_size=2, pid=1)
    run.lines[0].append("{not json")
    run.say(1_600_000_001, step=1, attempt=0)
    found = account(run.written(), Config(), 1_600_000_002.0)
    assert any("signals not read" in it for it in found.not_observed)
