"""A table holds the newest steps of all ranks, however long the run and wherever its files were cut."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from train_ledger.chaos.fleet import write
from train_ledger.facts import Event, Step
from train_ledger.run_dir import RunDir
from train_ledger.slow.table import Until, read_table, table_of_facts
from train_ledger.sources import read_run


def run_dir(path: Path, **run: Any) -> RunDir:
    found = RunDir(path)
    found.signals.mkdir(parents=True)
    found.run_json.write_text(json.dumps(run))
    return found


def line(step: int, rank: int = 0, **values: Any) -> str:
    return json.dumps({"t": 1e9 + step, "step": step, "rank": rank, "step_time_s": 1.0, **values}) + "\n"


def test_files_and_facts_make_the_same_table(tmp_path: Path) -> None:
    fleet = write(tmp_path, steps=50, ranks_per_host=2, fault="restart", checkpoint_every=10)
    by_files = read_table(fleet.run_dir)
    by_facts = table_of_facts(read_run(fleet.run_dir).facts, fleet.run_dir.read_run())
    assert by_files.places[0].uuid is not None
    for one, other in ((by_files, by_facts), (by_files.earlier, by_facts.earlier)):
        assert one is not None
        assert other is not None
        assert one.steps.tolist() == other.steps.tolist()
        assert one.attempt == other.attempt
        assert one.hosts == other.hosts == ("node000", "node000", "node001", "node001")
        assert np.array_equal(one.steady, other.steady)
        assert one.values.keys() == other.values.keys()
        for name, told in one.values.items():
            np.testing.assert_array_equal(told, other.values[name])


def test_an_attempt_ends_the_table_and_the_one_before_is_kept(tmp_path: Path) -> None:
    fleet = write(tmp_path, steps=40, fault="restart", fault_step=20)
    table = read_table(fleet.run_dir)
    assert table.attempt == 1
    assert table.steps[0] == 11
    assert table.marks.restart.tolist()[:2] == [True, False]
    assert not table.steady[:3].any()
    assert table.steady[3:].all()
    assert table.earlier is not None
    assert table.earlier.steps.tolist() == list(range(1, 21))
    assert table.earlier.attempt == 0


def test_the_newest_steps_are_read_and_no_more_of_a_longer_run(tmp_path: Path) -> None:
    read = []
    for steps in (2_000, 20_000):
        run = run_dir(tmp_path / str(steps), world_size=2)
        for rank in (0, 1):
            lines = "".join(line(step, rank, compute_s=0.5) for step in range(steps))
            run.signals_of(rank).write_text(lines)
        table = read_table(run, 100)
        assert table.steps.tolist() == list(range(steps - 100, steps))
        early = read_table(run, 100, until=Until(0, 500))
        assert early.steps.tolist() == list(range(401, 501))
        at = read_table(run, 100, at=1e9 + 700.5)
        assert at.steps[-1] == 700
        assert at.shape == (2, 100)
        read.append((table.read_bytes, early.read_bytes))
    assert read[1][0] < 1.1 * read[0][0]
    assert read[1][1] < 1.2 * read[0][1] + 100_000


def test_rotated_files_are_one_row_of_lines(tmp_path: Path) -> None:
    run = run_dir(tmp_path)
    path = run.signals_of(0)
    path.write_text("".join(line(step) for step in range(90, 100)))
    Path(f"{path}.1").write_text("".join(line(step) for step in range(40, 90)))
    Path(f"{path}.2").write_text("".join(line(step) for step in range(40)))
    assert read_table(run, 80).steps.tolist() == list(range(20, 100))
    assert read_table(run, 30, until=Until(0, 60)).steps.tolist() == list(range(31, 61))


def test_what_can_be_no_value_is_counted_and_left_out(tmp_path: Path) -> None:
    run = run_dir(tmp_path)
    run.signals_of(0).write_text(
        line(1, compute_s="NaN")
        + line(2, compute_s=-1.0)
        + '{"t": 3, "step": 3, "rank": 0, "compute_s": NaN}\n'
        + "no line at all\n"
        + line(4, compute_s=1e9)
        + line(5, compute_s=None)
        + line(6, compute_s=0.5)
        + '{"t": 3, "ste'
    )
    table = read_table(run)
    assert table.steps.tolist() == [1, 2, 3, 4, 5, 6]
    assert table.of("compute_s")[0].tolist() == pytest.approx([math.nan] * 5 + [0.5], nan_ok=True)
    assert table.odd == {"compute_s": 2}
    assert table.damaged == {"not_json": 1}


def test_stages_and_replicas_by_the_layout(tmp_path: Path) -> None:
    run = run_dir(tmp_path, world_size=8, parallelism={"tp": 2, "dp": 2, "pp": 2})
    for rank in range(8):
        run.signals_of(rank).write_text(line(1, rank))
    table = read_table(run)
    assert table.stages == (0, 0, 0, 0, 1, 1, 1, 1)
    assert [place.replica for place in table.places] == [0, 0, 1, 1, 0, 0, 1, 1]


def test_a_rank_that_logs_every_tenth_step_leaves_gaps() -> None:
    facts = [Step(float(step), step, 0, values={"compute_s": 1.0}) for step in range(1, 41)]
    facts += [Step(float(step), step, 1, values={"compute_s": 2.0}) for step in range(10, 41, 10)]
    table = table_of_facts(facts)
    assert table.shape == (2, 40)
    assert np.isfinite(table.of("compute_s")).sum(axis=1).tolist() == [40, 4]
    assert table.of("step_time_s")[1, 19] == 1.0


def test_a_late_line_of_an_earlier_step_is_no_restart() -> None:
    facts = [Step(float(step), step, 0, values={"step_time_s": 1.0}) for step in range(10)]
    facts.insert(6, Step(5.5, 3, 0, values={"gc_s": 0.5}))
    table = table_of_facts(facts)
    assert len(table.steps) == 10
    assert table.earlier is None
    assert table.of("gc_s")[0, 3] == 0.5
    assert table.marks.gc.tolist() == [False] * 3 + [True] + [False] * 6


def test_steps_in_which_something_else_stood_are_marked() -> None:
    def step(number: int) -> Step:
        return Step(float(number), number, 0, values={"step_time_s": 1.0})

    facts = [
        *map(step, range(10)),
        Event(9.5, "ckpt_start", 0, 9),
        *map(step, range(10, 15)),
        Event(14.5, "phase_start", 0, details={"phase": "evaluation"}),
        *map(step, range(15, 20)),
    ]
    table = table_of_facts(facts)
    assert np.flatnonzero(table.marks.checkpoint).tolist() == [10]
    assert np.flatnonzero(table.marks.evaluation).tolist() == [15]
    assert np.flatnonzero(~table.steady).tolist() == [0, 1, 2, 10, 15]


def test_nothing_at_all(tmp_path: Path) -> None:
    assert read_table(RunDir(tmp_path)).shape == (0, 0)
    assert table_of_facts([]).shape == (0, 0)


def test_a_log_of_all_ranks_is_nobodys_own() -> None:
    table = table_of_facts([Step(1.0, 1, None, values={"fwd_s": 2.0, "fwd_min_s": 1.0, "loss": 2.0})])
    assert table.of_all
    assert set(table.values) == {"fwd_s", "fwd_min_s", "step_time_s"}
