"""A run without signals is told by its logs, until signals come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from train_ledger.config import Config
from train_ledger.facts import Step
from train_ledger.ledger import Fold
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunFacts, read_run

T0 = 1_770_000_000.0


def line(step: int) -> str:
    return (
        f" iteration {step:8d}/   90000 | consumed samples: {step * 64:12d} | elapsed time per iteration "
        f"(ms): 1000.0 | learning rate: 1.5E-04 | lm loss: 2.5E+00 | grad norm: 1.250 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def appended(path: Path, text: str, t: float = T0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)
    os.utime(path, (t, t))


def signal(run: RunDir, step: int, *, rank: int = 0) -> None:
    line = {"t": T0 + step, "step": step, "rank": rank, "loss": 2.0}
    appended(run.signals_of(rank), json.dumps(line) + "\n")


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


def steps(files: RunFacts) -> list[tuple[int | None, int]]:
    return [(it.rank, it.step) for it in all_steps(files)]


def all_steps(files: RunFacts) -> list[Step]:
    facts = files.poll()
    while not files.caught_up:
        facts += files.poll()
    return [it for it in facts if isinstance(it, Step)]


def test_the_logs_tell_of_a_run_without_signals(run: RunDir) -> None:
    appended(run.logs / "train.log", line(1) + line(2))
    files = RunFacts(run)
    assert (steps(files), files.by_logs, files.files) == ([(None, 1), (None, 2)], True, 1)
    files.close()


def test_signals_win(run: RunDir) -> None:
    appended(run.logs / "train.log", line(1) + line(2))
    signal(run, 7)
    files = RunFacts(run)
    assert (steps(files), files.by_logs) == ([(0, 7)], False)
    files.close()


def test_what_logs_told_is_forgotten_when_signals_come(run: RunDir) -> None:
    appended(run.logs / "train.log", "".join(map(line, range(1, 60))), T0 + 60)
    files, fold = RunFacts(run), Fold("r", Config())
    files.fold_into(fold)
    assert fold.state(T0 + 61).step == 59
    for step in range(1, 9):
        signal(run, step)
    appended(run.logs / "train.log", line(60))
    files.fold_into(fold)
    state = fold.state(T0 + 62)
    assert (state.step, state.attempt, len(state.attempts), files.by_logs) == (8, 0, 1, False)
    assert not state.ranks[0].speaks_for_all
    files.close()


def test_signals_that_are_there_once_stay_the_source(run: RunDir) -> None:
    signal(run, 1)
    files = RunFacts(run)
    assert steps(files) == [(0, 1)]
    run.signals_of(0).unlink()
    appended(run.logs / "train.log", line(5))
    assert steps(files) == []
    files.close()


def test_what_is_wrong_with_the_folder_of_signals_is_told_beside_the_logs(run: RunDir) -> None:
    run.signals.write_text("")
    appended(run.logs / "train.log", line(1) + line(2))
    reading = read_run(run)
    assert reading.by_logs
    assert "1 × not_a_folder (signals)" in reading.not_read


def test_a_run_that_has_neither_waits(run: RunDir) -> None:
    files = RunFacts(run)
    assert (files.poll(), files.caught_up, files.files) == ([], True, 0)
    signal(run, 1)
    assert steps(files) == [(0, 1)]
    files.close()


def test_of_long_logs_the_ends_are_read_and_that_is_told(run: RunDir) -> None:
    log = run.logs / "train.log"
    appended(log, "".join(map(line, range(1, 5001))))
    files = RunFacts(run)
    files.begin_logs_at_tail(64 << 10)
    told = steps(files)
    assert told[-1] == (None, 5000)
    assert len(told) < 400
    assert files.left_out_bytes > 1_000_000
    facts = RunFacts(run)
    facts.begin_logs_at_tail(64 << 10)
    last = all_steps(facts)[-1]
    since, number = last.source.removeprefix("logs/train.log@").split(":")
    behind = log.read_bytes()[int(since) :].splitlines()
    assert b"    5000/" in behind[int(number) - 1]
    files.close()
    facts.close()


def test_ranks_of_other_hosts_are_left_to_their_own_exporter(run: RunDir) -> None:
    for rank, host in ((0, "n1"), (1, "n2")):
        record = {
            "global_rank": rank,
            "rank": rank,
            "source": "training",
            "host_name": host,
            "pid": 7,
            "tid": 7,
        }
        lines = [
            {**record, "step": step, "time_us": int((T0 + step) * 1e6), "log_type": "event", "value": 900.0,
             "log_type_name": f"step_{part}"}
            for step in (1, 2) for part in ("start", "end")
        ]  # fmt: skip
        text = "".join(json.dumps(it) + "\n" for it in lines)
        appended(run.structured_logs / f"training.global_rank_{rank}.20260101-ab.jsonl", text)
    files = RunFacts(run, hosts=["n2"])
    assert steps(files) == [(1, 1), (1, 2)]
    assert files.host_of == {0: "n1", 1: "n2"}
    files.close()


def test_logs_that_lie_elsewhere_are_found_by_run_json(run: RunDir, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    run.merge_run({"log_dir": str(elsewhere)})
    appended(elsewhere / "train.log", line(1) + line(2))
    files = RunFacts(run)
    assert steps(files) == [(None, 1), (None, 2)]
    files.close()


def test_an_earlier_reader_s_signals_speak_while_their_folder_is_away(run: RunDir) -> None:
    signal(run, 1)
    files = RunFacts(run)
    files.poll()
    memory = files.memory()
    files.close()
    assert memory is not None
    again = RunFacts(run)
    assert again.resume(memory)
    run.signals.rename(run.path / "away")
    appended(run.logs / "train.log", line(5))
    assert steps(again) == []
    again.close()


def test_a_run_with_signals_does_not_load_what_reads_logs(run: RunDir) -> None:
    signal(run, 1)
    code = (
        "import sys; from pathlib import Path; from train_ledger.run_dir import RunDir\n"
        "from train_ledger.sources import RunFacts\n"
        f"files = RunFacts(RunDir(Path({str(run.path)!r}))); print(len(files.poll()))\n"
        "print([name for name in sys.modules if name.startswith('train_ledger.sources.formats')])\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "1\n[]\n"
