"""From lines to metrics, where an exporter that keeps the last line of each file alone goes wrong."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from dash.test_exporter import start, step, write
from dash.test_exposition import Series, parsed
from train_ledger.config import Config, Limits
from train_ledger.dash.exporter import Exporter
from train_ledger.run_dir import RunDir

T0 = 1_800_000_000.0


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "r42")


def exported(run_dir: RunDir, config: Config | None = None, *, now: float = T0 + 25) -> Series:
    exporter = Exporter(run_dir, config or Config(), clock=lambda: now)
    while not exporter.poll():
        pass
    found = parsed(exporter.metrics() or "")
    exporter.close()
    return found


def of_rank(rank: int) -> tuple[tuple[str, str], ...]:
    return (("rank", str(rank)), ("run", "r42"))


def steps(rank: int, first: int, last: int, **values: Any) -> list[dict[str, Any]]:
    return [step(T0 + number, rank, number, **values) for number in range(first, last + 1)]


def test_one_step_without_a_finite_loss_is_counted_though_hundreds_of_finite_ones_follow(
    run_dir: RunDir,
) -> None:
    broken = step(T0 + 301, 0, 301, loss="NaN")
    write(run_dir, 0, *steps(0, 1, 300, loss=2.0), broken, *steps(0, 302, 700, loss=2.0))
    found = exported(run_dir)
    assert found["train_loss_nonfinite_total", of_rank(0)] == 1
    assert found["train_loss_is_finite", of_rank(0)] == 1
    assert found["train_step", of_rank(0)] == 700


def test_a_rank_whose_step_times_are_none_does_not_move_the_median(run_dir: RunDir) -> None:
    for rank, took in enumerate([1.0, 1.0, 1.0, "NaN"]):
        write(run_dir, rank, *steps(rank, 1, 40, step_time_s=took))
    assert exported(run_dir)["train_step_time_seconds_p50", (("run", "r42"),)] == 1.0


def test_a_rank_that_left_does_not_hold_the_median(run_dir: RunDir) -> None:
    write(run_dir, 0, start(T0, 0), *steps(0, 1, 30, step_time_s=40.0), start(T0 + 40, 0, attempt=1))
    write(run_dir, 0, *(step(T0 + 40 + n, 0, 30 + n, attempt=1, step_time_s=1.0) for n in range(1, 40)))
    write(run_dir, 1, start(T0, 1), *steps(1, 1, 30, step_time_s=40.0))
    assert exported(run_dir)["train_step_time_seconds_p50", (("run", "r42"),)] == 1.0


def test_the_file_names_the_rank_where_lines_do_not(run_dir: RunDir) -> None:
    for rank in (3, 7):
        nameless = [{"t": T0 + n, "step": n, "loss": float(rank)} for n in range(1, 20)]
        write(run_dir, rank, *nameless)
    found = exported(run_dir)
    assert (found["train_loss", of_rank(3)], found["train_loss", of_rank(7)]) == (3.0, 7.0)


@pytest.mark.parametrize("newest_is_written_first", [True, False])
def test_the_newest_attempt_counts_in_whichever_file_it_stands(
    run_dir: RunDir, newest_is_written_first: bool
) -> None:
    run_dir.signals.mkdir(parents=True)
    old = [start(T0, 0), *steps(0, 1, 50, loss=5.0)]
    new = [start(T0 + 60, 0, attempt=1), *({**line, "attempt": 1} for line in steps(0, 70, 90, loss=4.0))]
    files = [("rank_00000.jsonl.1", old), ("rank_00000.jsonl", new)]
    for name, lines in files[::-1] if newest_is_written_first else files:
        (run_dir.signals / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = exported(run_dir, now=T0 + 95)
    assert found["train_step", of_rank(0)] == 90
    assert found["train_loss", of_rank(0)] == 4.0
    assert found["train_restart_total", (("run", "r42"),)] == 1


def test_what_else_stands_in_a_line_is_no_metric_unless_asked_for_and_then_bounded(run_dir: RunDir) -> None:
    others = {f"key_{number}": number for number in range(50)}
    write(run_dir, 0, *steps(0, 1, 20, pid=4711, port=29500, seed=7, loss=1.0, **others))
    names = {name for name, _ in exported(run_dir)}
    assert not {name for name in names if "pid" in name or "seed" in name or "key_" in name}
    asked = exported(run_dir, Config(limits=Limits(unknown_fields=True, unknown_field_series=10)))
    assert len({name for name, _ in asked if name.startswith("train_field_")}) == 10
    assert asked["train_exporter_fields_left_out", (("run", "r42"),)] == 43


def test_a_counter_keeps_its_number_where_the_last_line_does_not_tell_it(run_dir: RunDir) -> None:
    told = [step(T0 + n, 0, n, **({"num_ooms": n // 10} if n % 10 == 0 else {})) for n in range(1, 56)]
    write(run_dir, 0, *told)
    assert exported(run_dir)["train_num_ooms_total", of_rank(0)] == 5


def test_a_value_that_is_not_finite_is_shown_as_one(run_dir: RunDir) -> None:
    write(run_dir, 0, *steps(0, 1, 20, grad_norm=1.0), step(T0 + 21, 0, 21, grad_norm="Infinity"))
    assert exported(run_dir)["train_grad_norm", of_rank(0)] == math.inf


def test_threads_take_turns_more_often_only_while_it_is_served(run_dir: RunDir) -> None:
    write(run_dir, 0, *steps(0, 1, 5))
    before_s = sys.getswitchinterval()
    with Exporter(run_dir, Config()).serve(port=0):
        assert sys.getswitchinterval() < before_s
    assert sys.getswitchinterval() == before_s
