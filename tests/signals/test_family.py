"""A child of a rank is not the rank, and a child of a launcher is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from signals.scripts import events, run_to_end, signal_lines
from train_ledger.signals import family

WHOLE_RUN = ["run_start", "phase_start", "phase_end", "run_end"]


def run_script(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script that is a file: what `spawn` starts imports it anew."""
    path = folder / "train.py"
    path.write_text(script)
    return subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=180, check=True, cwd=folder
    )


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.parametrize("run", ["'run'", "f'run-{os.getpid()}'"], ids=["one_run", "run_by_the_process"])
def test_a_worker_that_imports_the_script_anew_is_silent(tmp_path: Path, method: str, run: str) -> None:
    script = f"""
import multiprocessing, os
import train_ledger
monitor = train_ledger.start({run})

def work():
    again = train_ledger.start({run})
    again.step(99, loss=1.0)
    with again.phase("data"), again.checkpoint(99), again.evaluation(), again:
        again.log(step=99, loss=1.0)
    again.event("warning")

if __name__ == "__main__":
    monitor.step(1)
    process = multiprocessing.get_context({method!r}).Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
    monitor.step(2)
"""
    ended = run_script(tmp_path, script)
    (folder,) = tmp_path.glob("run*")
    assert [line["event"] for line in events(folder)] == WHOLE_RUN
    assert [line["step"] for line in signal_lines(folder) if "event" not in line] == [1, 2]
    assert {line["attempt"] for line in signal_lines(folder)} == {0}
    assert "is a child of process" in ended.stderr
    assert "does nothing" in ended.stderr


def test_ranks_that_a_launcher_spawns_are_heard(tmp_path: Path) -> None:
    script = """
import multiprocessing
import train_ledger

def train(rank):
    train_ledger.start("run", rank=rank, world_size=2).step(1)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=train, args=(rank,)) for rank in range(2)]
    for rank in ranks: rank.start()
    for rank in ranks: rank.join()
"""
    assert run_script(tmp_path, script).stderr == ""
    for rank in range(2):
        assert [line["event"] for line in events_of(tmp_path / "run", rank)] == WHOLE_RUN


def test_a_rank_that_a_launcher_spawned_and_that_exits_with_a_code_did_not_end_well(tmp_path: Path) -> None:
    script = """
import multiprocessing, sys
import train_ledger

def train():
    train_ledger.start("run").step(1)
    sys.exit(7)

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=train)
    process.start()
    process.join()
"""
    run_script(tmp_path, script)
    (told,) = events(tmp_path / "run", "exception")
    assert (told["type"], told["message"]) == ("SystemExit", "7")
    assert not events(tmp_path / "run", "run_end")


def events_of(run: Path, rank: int) -> list[dict[str, object]]:
    return [line for line in signal_lines(run, rank) if "event" in line]


def test_other_ranks_other_runs_and_what_follows_the_end_are_heard(tmp_path: Path) -> None:
    script = """
import subprocess
def start(*arguments):
    code = "import sys, train_ledger; train_ledger.start(sys.argv[1], rank=int(sys.argv[2])).step(1)"
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
here = str(monitor.run_dir.path)
start(here, "0")
start(here, "1")
start(here + "-other", "0")
monitor.close()
start(here, "0")
"""
    run = tmp_path / "run"
    assert run_to_end(run, script).returncode == 0
    assert [line["event"] for line in events(run)] == WHOLE_RUN * 2
    assert [line["attempt"] for line in events(run, "run_start")] == [0, 1]
    assert [line["event"] for line in events_of(run, 1)] == WHOLE_RUN
    assert [line["event"] for line in events(tmp_path / "run-other")] == WHOLE_RUN


@pytest.mark.parametrize(
    "mark", ["", "nonsense", "1 2", "x y z w", f"{2**22 + 1} 0 0 /run/rank", "{own} 0 0 /run/rank"]
)
def test_a_mark_of_nobody_silences_nobody(monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    monkeypatch.setenv("TRAIN_LEDGER_SPEAKER", mark.format(own=os.getpid()))
    assert family.speaker_of(0, Path("/run/rank")) is None


def test_the_mark_of_an_ancestor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAIN_LEDGER_SPEAKER", f"{os.getppid()} 3 1 /a run/rank")
    found = family.speaker_of(3, Path("/a run/rank"))
    assert found == (os.getppid(), 3, 1, "/a run/rank")
    assert family.speaker_of(2, Path("/a run/rank")) is None
    family.take_mark()  # another's
    assert "TRAIN_LEDGER_SPEAKER" in os.environ
