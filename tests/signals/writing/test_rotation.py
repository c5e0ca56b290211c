"""A file that has become large gets its next name; no reader loses a line by it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from train_ledger import SignalLogger
from train_ledger.facts import Step
from train_ledger.run_dir import RunDir
from train_ledger.signals.writing.attempt import next_attempt
from train_ledger.signals.writing.rotation import Rotation, rotated
from train_ledger.signals.writing.sink import Sink
from train_ledger.sources import RunFiles


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rank_00005.jsonl"


def write_and_rotate(sink: Sink, *lines: bytes) -> None:
    for line in lines:
        assert sink.write(line) == b""
        sink.rotate()


def contents(path: Path) -> list[bytes]:
    """Of the file and its older ones, newest first."""
    found = []
    for age in range(100):
        if rotated(path, age).exists():
            found.append(rotated(path, age).read_bytes())
    return found


def test_each_name_moves_on_by_one(path: Path) -> None:
    write_and_rotate(Sink(path, Rotation(at_bytes=4)), b"one\n", b"two\n", b"three\n", b"4\n")
    assert contents(path) == [b"4\n", b"three\n", b"two\n", b"one\n"]
    assert sorted(it.name for it in path.parent.iterdir()) == [
        "rank_00005.jsonl",
        "rank_00005.jsonl.1",
        "rank_00005.jsonl.2",
        "rank_00005.jsonl.3",
    ]


def test_only_the_newest_are_kept_where_that_is_wanted(path: Path) -> None:
    write_and_rotate(Sink(path, Rotation(at_bytes=1, keep=2)), *(b"%d\n" % n for n in range(6)))
    assert contents(path) == [b"5\n", b"4\n"]


def test_none_is_rotated_where_that_is_not_wanted(path: Path) -> None:
    write_and_rotate(Sink(path, Rotation(at_bytes=0)), b"one\n", b"two\n")
    assert contents(path) == [b"one\ntwo\n"]


def test_a_line_that_a_full_disk_cut_is_finished_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink, write = Sink(path, Rotation(at_bytes=1)), os.write
    with monkeypatch.context() as patch:
        patch.setattr("train_ledger.signals.writing.sink.os.write", lambda fd, data: write(fd, data[:2]))
        rest = sink.write(b"one\n")
        sink.rotate()
    assert contents(path) == [b"on"]
    write_and_rotate(sink, rest)
    assert contents(path) == [b"one\n"]
    assert not path.exists()


def test_a_file_that_somebody_else_put_there_is_not_moved(path: Path) -> None:
    sink = Sink(path, Rotation(at_bytes=1))
    sink.write(b"one\n")
    path.rename(path.with_name("away"))
    path.write_bytes(b"another's\n")
    sink.rotate()
    assert contents(path) == [b"another's\n"]


def test_a_folder_that_takes_no_new_name_costs_no_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(path, Rotation(at_bytes=1))

    def refuse(old: Path, new: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("train_ledger.signals.writing.rotation.os.rename", refuse)
    write_and_rotate(sink, b"one\n", b"two\n")
    assert contents(path) == [b"one\ntwo\n"]


@pytest.mark.parametrize("seconds", [3.0, pytest.param(30.0, marks=pytest.mark.slow)])
def test_a_reader_that_follows_sees_each_line_once_and_in_order(tmp_path: Path, seconds: float) -> None:
    logger = SignalLogger(tmp_path, rank=5, attempt=0, rotation=Rotation(at_bytes=4096))
    files, seen, step = RunFiles(RunDir(tmp_path)), [], 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(20):
            logger.log(step=step, loss=2.5)
            step += 1
        logger.flush(1.0)  # which wakes the writer, so that the new file may come at once
        if step % 60 == 0:
            seen += [fact.step for fact in files.poll() if isinstance(fact, Step)]
    logger.close()
    while len(seen) < step and time.monotonic() - began < seconds + 120:
        seen += [fact.step for fact in files.poll() if isinstance(fact, Step)]
    assert seen == list(range(step))
    assert files.bad_lines == {}
    assert len(list(RunDir(tmp_path).signal_files())) > 5
    files.close()


def test_who_comes_later_reads_the_older_files_first(tmp_path: Path) -> None:
    logger = SignalLogger(tmp_path, rank=5, attempt=0, rotation=Rotation(at_bytes=500))
    for step in range(100):
        logger.log(step=step, loss=2.5)
        if step % 5 == 0:
            logger.flush(1.0)
            time.sleep(0.005)
    logger.close()
    files = RunFiles(RunDir(tmp_path))
    assert [fact.step for fact in files.poll() if isinstance(fact, Step)] == list(range(100))
    files.close()


def test_an_attempt_is_found_in_the_file_that_was_rotated(path: Path) -> None:
    older = json.dumps({"t": 1.0, "step": 7, "rank": 5, "attempt": 3}).encode() + b"\n"
    rotated(path, 1).write_bytes(older)
    assert next_attempt(path, {}) == 4
    path.write_bytes(b"")
    assert next_attempt(path, {}) == 4
    path.write_bytes(older.replace(b"3}", b"4}"))
    assert next_attempt(path, {}) == 5
