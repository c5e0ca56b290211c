"""One process keeps several runs, each with its own journal, and shows them on one page."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from train_ledger.config import Config
from train_ledger.ledger import KeeperHeld, KeeperLock
from train_ledger.run_dir import RunDir
from train_ledger.watch import watch


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

    def line(self, pattern: str, timeout_s: float = 40.0) -> str:
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
        return self.process.wait(timeout=20)


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
    assert watching.process.wait(timeout=30) in (1, 3)
