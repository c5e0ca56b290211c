"""What a log tells is its own affair, unless the other files are of its run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from train_ledger.facts import Fact, Step
from train_ledger.sources import FileRead, read_facts


def line(step: int, rank: int | None = 0) -> str:
    front = "" if rank is None else f"[rank{rank}]: "
    return (
        f"{front} iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time "
        "per iteration (ms): 1250.0 | learning rate: 1.500000E-04 | global batch size:    64 | "
        "lm loss: 2.500000E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def log(path: Path, steps: Sequence[int], rank: int | None = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line(step, rank) for step in steps))
    return path


def facts(*paths: Path) -> list[Fact]:
    return list(read_facts(paths))


def numbered(*paths: Path) -> list[tuple[int | None, int]]:
    return [(it.step, it.attempt) for it in facts(*paths) if isinstance(it, Step)]


NAMES = (
    "a.log",
    "b.log",
    "rank_1.txt",
    "log.0",
    "log.1",
    "job/attempt_1/host.log",
    "x/train.log",
    "y/train.log",
)
STEPS = st.lists(st.tuples(st.integers(1, 9), st.sampled_from([None, 0, 1, 63])), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), STEPS, min_size=2))
def test_files_of_strangers_tell_together_what_each_tells_alone(
    logs: dict[str, list[tuple[int, int | None]]],
) -> None:
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in logs]
        for path, steps in zip(paths, logs.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(line(step, rank) for step, rank in steps))
        assert facts(*paths) == [it for path in paths for it in facts(path)]


def test_neither_attempts_nor_ranks_come_from_the_log_of_a_stranger(tmp_path: Path) -> None:
    log(tmp_path / "older.log", [5, 6, 7])
    told = log(tmp_path / "other.log", [1, 2])
    told.write_text(told.read_text() + line(2, None) + line(3, None))

    def shown() -> FileRead:
        reading = read_facts([tmp_path])
        list(reading)
        return reading.files[-1]

    together = shown().progress.attempts
    (tmp_path / "older.log").unlink()
    assert together == shown().progress.attempts
    assert {attempt for _, attempt in together} == {0}


def test_the_parts_of_a_log_are_one_log_in_whatever_order_they_are_named(tmp_path: Path) -> None:
    parts = [
        log(tmp_path / "train.log", [3, 4], None),
        log(tmp_path / "train.log.1", [4, 5, 2], None),
        log(tmp_path / "train.log.2", [1, 2, 3], None),
    ]
    assert numbered(*parts) == numbered(tmp_path)
    assert numbered(*parts) == [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (2, 1), (3, 1), (4, 1)]


def test_logs_with_a_number_at_their_end_are_no_parts_of_one(tmp_path: Path) -> None:
    for number in (0, 1, 2):
        log(tmp_path / f"log.{number}", [1, 2], None)
    assert {attempt for _, attempt in numbered(tmp_path)} == {0}


def test_a_file_that_is_named_twice_is_no_restart(tmp_path: Path) -> None:
    path = log(tmp_path / "train.log", [1, 2])
    assert set(numbered(path, path)) == {(1, 0), (2, 0)}


def test_the_logs_of_a_run_directory_are_of_one_run_however_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    first = log(tmp_path / "logs" / "monday" / "all.log", [1, 2, 3])
    second = log(tmp_path / "logs" / "tuesday" / "all.log", [2, 3])
    assert numbered(tmp_path) == [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1)]
    assert numbered(first, second) == numbered(tmp_path)


def test_the_folder_of_logs_that_a_run_names_is_of_that_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    log(run / "logs" / "a.log", [1, 2, 3])
    log(tmp_path / "elsewhere" / "b.log", [2, 3])
    (run / "run.json").write_text('{"log_dir": "../elsewhere"}')
    assert numbered(run) == [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1)]


def test_the_files_below_one_launchers_attempts_are_of_one_run_and_two_launchers_are_two(
    tmp_path: Path,
) -> None:
    log(tmp_path / "r1" / "attempt_0" / "3" / "stderr.log", [4, 5], 3)
    log(tmp_path / "r1" / "attempt_0" / "3" / "stdout.log", [1, 2], 3)
    log(tmp_path / "r1" / "attempt_2" / "3" / "stdout.log", [2, 3], 3)
    log(tmp_path / "r2" / "attempt_0" / "3" / "stdout.log", [1], 3)
    assert numbered(tmp_path) == [(4, 0), (5, 0), (1, 1), (2, 1), (2, 2), (3, 2), (1, 0)]


def test_each_start_of_torchtitan_is_a_new_file_and_the_next_attempt(tmp_path: Path) -> None:
    for name, start_us, steps in (
        ("20260203-040506-AAAAAA", 1_770_000_000_000_000, (1, 2, 3)),
        ("20260203-050506-BBBBBB", 1_770_003_600_000_000, (2, 3)),
        ("20260203-060506-CCCCCC", 1_770_007_200_000_000, (4, 5)),
    ):
        told: list[tuple[str, str, dict[str, Any]]] = [("instant", "training_start", {})]
        told += [
            ("instant", "metric_value", {"step": it, "event_name": "train.loss", "value": 2.5})
            for it in steps
        ]
        lines = [
            {"source": "training", "rank": 0, "global_rank": 0, "pid": 7, "tid": 7, "time_us": start_us + at}
            | {"log_type": kind, "log_type_name": what, **more}
            for at, (kind, what, more) in enumerate(told)
        ]
        path = tmp_path / f"training.global_rank_0.{name}.jsonl"
        path.write_text("".join(f"{json.dumps(it)}\n" for it in lines))
    assert numbered(tmp_path) == [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (4, 2), (5, 2)]
