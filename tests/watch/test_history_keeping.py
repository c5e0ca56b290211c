"""The history is kept beside the run, gone on from, and made again where it is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from train_ledger.config import Config
from train_ledger.ledger.history import curves
from train_ledger.run_dir import RunDir
from train_ledger.watch.console import Console
from train_ledger.watch.history_keeping import HistoryKeeping, history_path
from train_ledger.watch.keeper import Keeper
from waiting import wait_until


def write(run_dir: RunDir, first: int, last: int, rank: int = 0) -> None:
    run_dir.signals.mkdir(exist_ok=True)
    with run_dir.signals_of(rank).open("a") as file:
        for step in range(first, last + 1):
            file.write(json.dumps({"t": 1000.0 + step, "step": step, "rank": rank, "loss": 2.0}) + "\n")


def steps_in(keeping: HistoryKeeping) -> list[int]:
    with keeping.looked_at() as history:
        return [step for part in curves(history, ["loss"], points=2000) for step in part.steps]


def caught_up(keeping: HistoryKeeping, last: int) -> bool:
    steps = steps_in(keeping)
    return bool(steps) and steps[-1] == last and keeping.progress is None


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path)
    write(run, 1, 100)
    return run


def test_it_follows_a_run_that_goes_on(run_dir: RunDir) -> None:
    keeping = HistoryKeeping(run_dir)
    try:
        wait_until(lambda: caught_up(keeping, 100))
        write(run_dir, 101, 120)
        wait_until(lambda: caught_up(keeping, 120))
        assert steps_in(keeping) == list(range(1, 121))
    finally:
        keeping.close()


def test_the_next_one_goes_on_from_there_and_counts_no_step_twice(run_dir: RunDir) -> None:
    first = HistoryKeeping(run_dir)
    wait_until(lambda: caught_up(first, 100))
    first.close()
    write(run_dir, 101, 110)
    second = HistoryKeeping(run_dir)
    try:
        assert steps_in(second)[:100] == list(range(1, 101))
        wait_until(lambda: caught_up(second, 110))
        with second.looked_at() as history:
            assert int(history.curves[0].count.sum()) == 110
    finally:
        second.close()


def test_a_history_that_was_begun_before_the_run_wrote_its_name_is_gone_on_from(run_dir: RunDir) -> None:
    first = HistoryKeeping(run_dir)  # `watch` was there before the job
    wait_until(lambda: caught_up(first, 100))
    (run_dir.path / "run.json").write_text(json.dumps({"run": "r42", "started": 1000.0}))
    first.close()
    said: list[str] = []
    second = HistoryKeeping(run_dir, said.append)
    try:
        assert said == []
        assert steps_in(second) == list(range(1, 101))
    finally:
        second.close()


@pytest.mark.parametrize("content", [b"", b"garbage", b"train-ledger history 1\n" + bytes(200)])
def test_what_is_damaged_is_made_again_and_that_is_said(run_dir: RunDir, content: bytes) -> None:
    run_dir.ledger.mkdir()
    history_path(run_dir).write_bytes(content)
    said: list[str] = []
    keeping = HistoryKeeping(run_dir, said.append)
    try:
        wait_until(lambda: caught_up(keeping, 100))
    finally:
        keeping.close()
    assert len(said) == 1
    assert "made again" in said[0]


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def with_another_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [Path.unlink, cut_short, with_another_bit])
def test_what_was_kept_and_then_lost_cut_or_changed_is_made_again(
    run_dir: RunDir, harm: Callable[[Path], None]
) -> None:
    first = HistoryKeeping(run_dir)
    wait_until(lambda: caught_up(first, 100))
    first.close()
    harm(history_path(run_dir))
    said: list[str] = []
    second = HistoryKeeping(run_dir, said.append)
    try:
        wait_until(lambda: caught_up(second, 100))
        with second.looked_at() as history:
            assert int(history.curves[0].count.sum()) == 100
    finally:
        second.close()
    assert len(said) == (0 if harm is Path.unlink else 1)
    third = HistoryKeeping(run_dir)
    assert steps_in(third) == list(range(1, 101))
    third.close()


def test_a_run_that_was_written_anew_is_read_anew(run_dir: RunDir) -> None:
    first = HistoryKeeping(run_dir)
    wait_until(lambda: caught_up(first, 100))
    first.close()
    run_dir.signals_of(0).unlink()
    write(run_dir, 501, 520, rank=3)
    said: list[str] = []
    second = HistoryKeeping(run_dir, said.append)
    try:
        wait_until(lambda: caught_up(second, 520))
        assert steps_in(second) == list(range(501, 521))
        assert "other files" in said[0]
    finally:
        second.close()


def test_a_folder_that_cannot_be_written_costs_the_cache_alone(run_dir: RunDir) -> None:
    run_dir.ledger.write_text("in the way")
    said: list[str] = []
    keeping = HistoryKeeping(run_dir, said.append)
    wait_until(lambda: caught_up(keeping, 100))
    keeping.close()
    assert "cannot be written" in said[-1]


def test_a_run_of_logs_alone_has_a_history_too(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    lines = [f"2026-11-30 10:00:{step:02d} step {step} loss 2.{step}\n" for step in range(1, 41)]
    (tmp_path / "logs" / "train.log").write_text("".join(lines))
    keeping = HistoryKeeping(RunDir(tmp_path))
    try:
        wait_until(lambda: bool(steps_in(keeping)))
    finally:
        keeping.close()


def test_where_a_folder_s_name_is_no_text_nothing_is_kept_and_that_is_said(tmp_path: Path) -> None:
    run = RunDir(tmp_path / os.fsdecode(b"r\xff42"))
    run.path.mkdir()
    write(run, 1, 100)
    said: list[str] = []
    keeping = HistoryKeeping(run, said.append)
    wait_until(lambda: caught_up(keeping, 100))
    keeping.close()
    keeper = Keeper(run, Config(), Console(said.append, as_json=False))
    keeper.turn()
    keeper.close()
    assert [line.endswith("is no text") for line in said if "cannot be written" in line] == [True, True]
