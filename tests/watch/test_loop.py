"""One process keeps several runs, each with its own journal, and shows them on one page."""

from __future__ import annotations

import errno
import json
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from train_ledger.answer import ExitCode
from train_ledger.config import Config
from train_ledger.ledger import JournalError, KeeperHeld, KeeperLock, journal
from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.watch import Keeper, watch
from waiting import wait_until


def made_run(folder: Path, name: str, age_s: float) -> RunDir:
    """Two ranks that took a step a second, the last of them `age_s` ago."""
    run = RunDir(folder / name)
    run.signals.mkdir(parents=True)
    run.run_json.write_text(json.dumps({"run": name, "world_size": 2}))
    t = time.time() - age_s - 60
    for rank in range(2):
        start = {"t": t, "rank": rank, "event": "run_start", "world_size": 2, "host": "n0", "pid": None}
        steps = [{"t": t + step, "step": step, "rank": rank, "loss": 2.0} for step in range(1, 61)]
        run.signals_of(rank).write_text("".join(json.dumps(line) + "\n" for line in (start, *steps)))
    return run


class Watching:
    """`train-ledger watch` on these runs, and what it says."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "train_ledger", "watch", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line.rstrip("\n"))

    def line(self, pattern: str, timeout_s: float = 120.0) -> str:
        """The next line that this is found in."""
        deadline, seen = time.monotonic() + timeout_s, []
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                seen.append(self._lines.get(timeout=left_s))
            except queue.Empty:
                break
            if re.search(pattern, seen[-1]):
                return seen[-1]
        raise AssertionError("\n".join([f"{pattern} was not said, but", *seen]))

    def end(self) -> int:
        self.process.send_signal(2)
        return self.process.wait(timeout=90)


@pytest.fixture
def runs(tmp_path: Path) -> tuple[RunDir, RunDir]:
    return made_run(tmp_path, "r41", age_s=0.0), made_run(tmp_path, "r42", age_s=600.0)


@pytest.fixture
def watching(runs: tuple[RunDir, RunDir]) -> Iterator[Watching]:
    started = Watching(*(str(run.path) for run in runs), str(runs[0].path), "--port", "0")
    yield started
    started.process.kill()
    started.process.wait()


@pytest.mark.slow
def test_several_runs_stand_on_one_page_and_each_has_its_journal(
    runs: tuple[RunDir, RunDir], watching: Watching
) -> None:
    address = re.sub(r".*web page on ", "", watching.line("web page on"))
    said = watching.line("TrainingStepStalled")
    assert said.startswith("r42  ")
    with httpx.Client(base_url=address, trust_env=False) as client:
        page = client.get("/").text
        assert page.index("r42") < page.index("r41")
        assert client.get("/runs/0/api/state").json()["state"]["run"] == "r41"
        assert client.get("/runs/1/api/history?fields=loss").json()["attempts"][0]["steps"][-1] == 60
        assert {"r41", "r42"} <= set(
            re.findall(r'train_run_state\{run="(r\d+)"', client.get("/metrics").text)
        )
    assert watching.end() in (0, 130)
    for run in runs:
        kinds = [json.loads(line)["kind"] for line in run.journal.read_text().splitlines()]
        assert kinds.count("keeper_started") == 1


def test_where_one_is_kept_already_none_is_and_nothing_stays_behind(runs: tuple[RunDir, RunDir]) -> None:
    before = set(threading.enumerate())
    with KeeperLock(runs[1].keeper_lock), pytest.raises(KeeperHeld, match="r42"):
        watch(*((run, Config()) for run in runs), port=None, out=lambda _: None)
    for run in runs:
        with KeeperLock(run.keeper_lock):
            pass
    assert set(threading.enumerate()) <= before


@pytest.mark.slow
def test_for_scripts_each_line_says_of_which_run_it_is(runs: tuple[RunDir, RunDir]) -> None:
    watching = Watching(*(str(run.path) for run in runs), "--no-web", "--json", "--until-verdict")
    entry: dict[str, Any] = json.loads(watching.line('"verdict"'))
    assert entry["run"] == "r42"
    assert watching.process.wait(timeout=120) in (1, 3)


def turn_as_told(
    monkeypatch: pytest.MonkeyPatch, troubled: RunDir, troubles: list[Exception | None], turns: dict[str, int]
) -> None:
    """Each turn of the troubled run meets the next of these; when there are no more, somebody ends it all."""
    turn = Keeper.turn

    def turned(keeper: Keeper) -> None:
        turns[keeper.run_name] = turns.get(keeper.run_name, 0) + 1
        if keeper.run_dir == troubled:
            if not troubles:
                raise KeyboardInterrupt
            if (trouble := troubles.pop(0)) is not None:
                raise trouble
        turn(keeper)

    monkeypatch.setattr(Keeper, "turn", turned)


def test_a_run_that_cannot_be_read_takes_no_other_along(
    runs: tuple[RunDir, RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = OSError(errno.ESTALE, "Stale file handle", "signals/rank_00000.jsonl")
    turns: dict[str, int] = {}
    turn_as_told(monkeypatch, runs[0], [None, stale, stale, JournalError("journal.jsonl: gone"), None], turns)
    monkeypatch.setattr("train_ledger.watch.loop.time.sleep", lambda _: None)
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        watch(*((run, Config()) for run in runs), port=None, out=said.append)
    assert turns == {"r41": 6, "r42": 5}
    about = [line for line in said if "be read" in line]
    assert [line.startswith("r41  ") for line in about] == [True, True, True]
    first, second, last = about
    assert "cannot be read: [Errno 116] Stale file handle: 'signals/rank_00000.jsonl'; it is tried" in first
    assert "cannot be read: journal.jsonl: gone" in second
    assert "the run can be read again" in last


def test_a_run_alone_stays_watched_while_a_file_server_does_not_answer(
    runs: tuple[RunDir, RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = OSError(errno.ESTALE, "Stale file handle", "signals/rank_00000.jsonl")
    turns: dict[str, int] = {}
    turn_as_told(monkeypatch, runs[0], [None, stale, JournalError("journal.jsonl: gone"), None], turns)
    monkeypatch.setattr("train_ledger.watch.loop.time.sleep", lambda _: None)
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        watch((runs[0], Config()), port=None, out=said.append)
    assert turns == {"r41": 5}
    assert [line for line in said if "be read" in line][-1].endswith("the run can be read again")


@pytest.mark.parametrize(
    ("before", "waits"), [([], False), ([None], True)], ids=["at first", "for a verdict"]
)
def test_of_one_run_alone_it_is_the_end(
    runs: tuple[RunDir, RunDir], monkeypatch: pytest.MonkeyPatch, before: list[Exception | None], waits: bool
) -> None:
    turn_as_told(monkeypatch, runs[0], [*before, RunDirError("run.json: is a folder")], {})
    with pytest.raises(RunDirError, match="is a folder"):
        watch((runs[0], Config()), port=None, until_verdict=waits, out=lambda _: None)


BREAKS: dict[str, Callable[[RunDir], object]] = {
    "a file in its place": lambda run: (run.path.rename(f"{run.path}-moved"), run.path.write_text("x")),
    "removed": lambda run: shutil.rmtree(run.path, ignore_errors=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BREAKS)
def test_a_run_whose_folder_is_lost_is_shown_so_beside_the_others(
    runs: tuple[RunDir, RunDir], watching: Watching, what: str
) -> None:
    address = re.sub(r".*web page on ", "", watching.line("web page on"))
    watching.line("TrainingStepStalled")
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        wait_until(lambda: client.get("/runs/0/api/state").json()["state"]["step"] == 60)
        BREAKS[what](runs[0])
        wait_until(lambda: f"cannot be read: {runs[0].path}" in client.get("/").text, 60.0)
        before_t = client.get("/runs/1/api/state").json()["state"]["t"]
        wait_until(lambda: client.get("/runs/1/api/state").json()["state"]["t"] > before_t)
        assert watching.process.poll() is None
        assert "r42" in client.get("/").text
    assert watching.end() in (0, ExitCode.BAD_INPUT, 130)


@pytest.mark.slow
def test_what_is_said_of_a_runs_files_names_that_run(runs: tuple[RunDir, RunDir], tmp_path: Path) -> None:
    runs[1].run_json.write_text('{"run": "r42", "world_size": 2, "contacts": [')
    runs[1].run_json.rename(runs[1].path / "half")
    watching = Watching(*(str(run.path) for run in runs), "--port", "0")
    try:
        watching.line("web page on")
        (runs[1].path / "half").rename(runs[1].run_json)
        assert watching.line("no accounts").startswith("r42  ")
    finally:
        watching.process.kill()
        watching.process.wait()


@pytest.mark.slow
def test_another_run_in_the_place_of_one_is_begun_anew(tmp_path: Path) -> None:
    """Else its journal goes into a folder that nobody sees, and its steps are taken for the old one's."""
    run = made_run(tmp_path, "r42", age_s=0.0)
    watching = Watching(str(run.path), "--port", "0")
    try:
        watching.line("run is running at step 60")
        run.path.rename(tmp_path / "moved")
        made_run(tmp_path, "r42", age_s=600.0)
        assert "another run lies there now" in watching.line("lies there now")
        watching.line("web page on")
        watching.line("page alert TrainingStepStalled")
        assert journal.read(run.journal).entries[0]["kind"] == "keeper_started"
        with pytest.raises(KeeperHeld), KeeperLock(run.keeper_lock):
            pass
    finally:
        watching.end()


@pytest.mark.slow
def test_a_run_that_somebody_removed_is_not_made_again(tmp_path: Path) -> None:
    run = made_run(tmp_path, "r42", age_s=0.0)
    watching = Watching(str(run.path), "--port", "0")
    try:
        address = re.sub(r".*web page on ", "", watching.line("web page on"))
        watching.line("run is running at step 60")
        shutil.rmtree(run.path)
        with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
            wait_until(lambda: client.get("/api/state").json()["state"]["unreadable"], 60.0)
    finally:
        watching.end()
    assert not run.path.exists()
