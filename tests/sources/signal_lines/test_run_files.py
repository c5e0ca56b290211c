"""The signal files of a run directory, followed and filtered by host."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from train_ledger.facts import Event, Fact, Step, Stretch
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunFiles, read_all, read_whole


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    (tmp_path / "signals").mkdir()
    return RunDir(tmp_path)


def say(run: RunDir, rank: int, *lines: dict[str, Any] | bytes) -> None:
    with run.signals_of(rank).open("ab") as file:
        for line in lines:
            file.write(
                line if isinstance(line, bytes) else json.dumps({"rank": rank, **line}).encode() + b"\n"
            )


def start(t: float, host: str, **more: Any) -> dict[str, Any]:
    return {"t": t, "event": "run_start", "host": host, **more}


def steps(files: RunFiles) -> list[tuple[int, int]]:
    return [(fact.rank, fact.step) for fact in files.poll() if isinstance(fact, Step)]


def test_facts_of_all_ranks_come_merged_by_time(run: RunDir) -> None:
    for rank in (0, 1):
        say(run, rank, *({"t": step + rank / 2, "step": step} for step in range(3)))
    assert [(fact.rank, fact.t) for fact in read_all(run)] == [
        (0, 0),
        (1, 0.5),
        (0, 1),
        (1, 1.5),
        (0, 2),
        (1, 2.5),
    ]


def test_a_clock_that_steps_back_does_not_disorder_a_file(run: RunDir) -> None:
    say(run, 0, {"t": 100, "step": 1}, {"t": 40, "step": 2}, {"t": 101, "step": 3})
    say(run, 1, {"t": 50, "step": 1})
    assert [fact.step for fact in read_all(run) if fact.rank == 0] == [1, 2, 3]


def test_a_fact_says_where_it_stands_and_on_which_host(run: RunDir) -> None:
    say(run, 5, start(1.0, "node7"), {"t": 2.0, "step": 1})
    assert [(fact.source, fact.host) for fact in read_all(run)] == [
        ("signals/rank_00005.jsonl:1", "node7"),
        ("signals/rank_00005.jsonl:2", "node7"),
    ]


def test_bad_lines_and_files_are_counted_together(run: RunDir) -> None:
    say(run, 0, b"torn {\n", {"t": 1, "step": 1})
    run.signals_of(1).mkdir()
    files = RunFiles(run)
    assert steps(files) == [(0, 1)]
    assert files.bad_lines == {"not_json": 1, "not_a_file": 1}
    assert files.last_problem == "signals/rank_00000.jsonl:1: not_json"


def test_rotated_files_are_older(run: RunDir) -> None:
    run.signals_of(0).with_name("rank_00000.jsonl.1").write_bytes(b'{"t":1,"step":1,"rank":0}\n')
    say(run, 0, {"t": 2, "step": 2})
    assert steps(RunFiles(run)) == [(0, 1), (0, 2)]


def test_other_files_in_the_folder_are_left_alone(run: RunDir) -> None:
    for name in ("rank_0.jsonl.swp", ".rank_00000.jsonl.tmp", "rank_x.jsonl", "notes.txt"):
        (run.signals / name).write_bytes(b'{"t":1,"step":1,"rank":0}\n')
    assert read_all(run) == []


def test_a_run_without_signals_has_no_facts(tmp_path: Path) -> None:
    files = RunFiles(RunDir(tmp_path / "nothing"))
    assert files.poll() == []
    assert files.caught_up
    assert not files.bad_lines


class TestHosts:
    def test_only_ranks_of_the_wanted_host(self, run: RunDir) -> None:
        say(run, 0, start(0, "a"), {"t": 1, "step": 1})
        say(run, 1, start(0, "b"), {"t": 1, "step": 1})
        files = RunFiles(run, hosts=["b"])
        assert steps(files) == [(1, 1)]
        assert files.host_of == {0: "a", 1: "b"}

    def test_a_rank_of_unknown_host_is_read(self, run: RunDir) -> None:
        say(run, 0, {"t": 1, "step": 1})
        assert steps(RunFiles(run, hosts=["b"])) == [(0, 1)]

    def test_ranks_jsonl_says_where_a_rank_is(self, run: RunDir) -> None:
        say(run, 0, {"t": 1, "step": 1})
        run.ranks_jsonl.write_text('{"t": 0, "rank": 0, "host": "a"}\n')
        assert steps(RunFiles(run, hosts=["b"])) == []

    def test_a_bad_line_in_ranks_jsonl_is_counted(self, run: RunDir) -> None:
        run.ranks_jsonl.write_text('\n{}\n{"rank": 0, "host": "a"}\n')
        files = RunFiles(run)
        files.poll()
        assert files.host_of == {0: "a"}
        assert files.bad_lines == {"missing_field": 1}
        assert files.last_problem == "ranks.jsonl:2: missing_field rank"

    def test_a_rank_that_moves_here_is_read_from_then_on(self, run: RunDir) -> None:
        say(run, 0, start(0, "a"), {"t": 1, "step": 1})
        files = RunFiles(run, hosts=["b"])
        assert steps(files) == []
        say(run, 0, start(2, "b", attempt=1), {"t": 3, "step": 1, "attempt": 1})
        first, second = files.poll()
        assert isinstance(first, Event)
        assert (second.host, second.attempt) == ("b", 1)


def test_a_backlog_is_read_in_parts(run: RunDir) -> None:
    for rank in range(4):
        say(run, rank, *({"t": step, "step": step, "note": "x" * 200} for step in range(2000)))
    files = RunFiles(run)
    polls = [len(files.poll(max_bytes=300_000))]
    while not files.caught_up:
        polls.append(len(files.poll(max_bytes=300_000)))
    assert sum(polls) == 8000
    assert max(polls) < 3000
    assert files.lag_bytes == 0


def test_a_thousand_idle_files_cost_next_to_nothing(run: RunDir) -> None:
    for rank in range(1024):
        say(run, rank, {"t": 1, "step": 1})
    for path in run.signals.iterdir():
        os.utime(path, (1, 1))
    files = RunFiles(run)
    assert len(files.poll()) == 1024
    files.poll()
    began = time.process_time()
    for _ in range(10):
        files.poll()
    assert (time.process_time() - began) / 10 < 0.2, (
        "a poll a second should stay far below a percent of a core"
    )
    files.close()


def test_what_was_not_read_is_told_by_reason_with_its_last_place(run: RunDir) -> None:
    say(run, 0, {"t": 1, "step": 1}, {"t": "soon", "step": 2})
    run.signals_of(1).write_bytes(b"\x7fELF garbage\nmore\n")
    run.signals_of(2).mkdir()
    os.mkfifo(run.ranks_jsonl)
    run.signals_of(3).write_bytes(b'{"t": 3, "step": 3}\n{"t": 4, "st')
    reading = read_whole(run)
    assert [fact.t for fact in reading.facts] == [1, 3]
    assert set(reading.not_read) == {
        "1 × bad_number (signals/rank_00000.jsonl:2: t)",
        "2 × not_json (signals/rank_00001.jsonl:2)",
        "2 × not_a_file (signals/rank_00002.jsonl)",
        "1 × torn (signals/rank_00003.jsonl:2)",
    }


def test_signals_that_are_a_file_are_told(tmp_path: Path) -> None:
    (tmp_path / "signals").write_text("")
    assert read_whole(RunDir(tmp_path)) == ([], ("1 × not_a_folder (signals)",))


class TestLeftOut:
    """A run that was restarted elsewhere in lines that nobody read."""

    def told(self, run: RunDir, *, restarted: bool) -> RunFiles:
        say(run, 0, start(0, "a"), *({"t": n, "step": n} for n in range(1, 2000)))
        if restarted:
            say(run, 0, start(2000, "b", attempt=1))
        attempt = {"attempt": 1} if restarted else {}
        say(run, 0, *({"t": n, "step": n, **attempt} for n in range(2001, 9000)))
        files = RunFiles(run)
        files.begin_at_tail(20_000)
        return files

    def hosts(self, files: RunFiles) -> set[str | None]:
        fold = Folded()
        files.fold_into(fold)
        while not files.caught_up:
            files.fold_into(fold)
        assert fold.steps[-1].step == 8999
        assert files.left_out_bytes > 100_000
        return {step.host for step in fold.steps[-100:]}

    def test_within_the_same_attempt_a_rank_is_where_it_was(self, run: RunDir) -> None:
        assert self.hosts(self.told(run, restarted=False)) == {"a"}

    def test_behind_another_start_nobody_knows_where_it_is(self, run: RunDir) -> None:
        assert self.hosts(self.told(run, restarted=True)) == {None}

    def test_who_goes_on_from_there_knows_as_much(self, run: RunDir) -> None:
        files = self.told(run, restarted=False)
        self.hosts(files)
        again, fold = RunFiles(run), Folded()
        assert again.resume(files.memory())
        say(run, 0, {"t": 9000, "step": 9000})
        again.fold_into(fold)
        assert [(step.step, step.host) for step in fold.steps] == [(9000, "a")]
        assert again.left_out_bytes == files.left_out_bytes

    def test_unless_ranks_jsonl_says_so(self, run: RunDir) -> None:
        lines = ['{"t": 0, "rank": 0, "host": "a"}', '{"t": 2000, "rank": 0, "host": "b", "attempt": 1}']
        run.ranks_jsonl.write_text("\n".join(lines) + "\n")
        assert self.hosts(self.told(run, restarted=True)) == {"b"}


class Folded:
    """Keeps the steps that it is given."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(self, fact: Fact) -> None:
        if isinstance(fact, Step):
            self.steps.append(fact)

    def add_stretch(self, stretch: Stretch) -> None:
        self.steps += [*map(stretch.step_of, stretch.earlier), stretch.last]
