"""There is always an earlier trace to compare with, and nothing is asked of a run in trouble."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config, Trace
from train_ledger.ledger import RunState, journal
from train_ledger.run_dir import RunDir
from train_ledger.watch import Keeper
from train_ledger.watch.clock import RunClock
from train_ledger.watch.console import Console
from train_ledger.watch.trace_schedule import TraceSchedule, remove_oldest
from waiting import wait_until

STEADY = RunState(
    run="r42", t=10_000.0, state="running", step=500, last_step_t=9_999.0, p50_step_time_s=1.0, world_size=8,
    stall_threshold_s=90.0,
)  # fmt: skip


class Ranks:
    """Ranks that answer every request, and write what they are asked for."""

    def __init__(self, run_dir: RunDir) -> None:
        self.run_dir, self.ends = run_dir, threading.Event()
        self.thread = threading.Thread(target=self._answer)
        self.thread.start()

    def _answer(self) -> None:
        while not self.ends.is_set():
            for path in self.run_dir.requests.glob("scheduled-*.json"):
                if ".rank_" not in path.name and path.is_file():
                    self._do(json.loads(path.read_text()))
            time.sleep(0.01)

    def _do(self, request: dict[str, object]) -> None:
        for rank in request["ranks"]:  # type: ignore[attr-defined]
            file = self.run_dir.traces() / str(request["folder"]) / f"rank_{rank}.json.gz"
            reply = self.run_dir.reply(str(request["id"]), rank)
            if not reply.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"")
                reply.write_text(json.dumps({"ok": True, "path": str(file)}))


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    found = RunDir(tmp_path)
    found.requests.mkdir()
    return found


def taken(run_dir: RunDir) -> list[str]:
    return sorted(str(it.relative_to(run_dir.traces())) for it in run_dir.traces().rglob("rank_*"))


class Journalled:
    """What a schedule writes down."""

    def __init__(self) -> None:
        self.entries: list[dict[str, object]] = []

    def __call__(self, kind: str, **details: object) -> None:
        self.entries.append({"kind": kind, **details})


def settle(schedule: TraceSchedule, state: RunState, said: Journalled, count: int) -> None:
    def came() -> bool:
        schedule.attend(state, is_troubled=True)  # asks for nothing, and says what came
        return len(said.entries) == count

    wait_until(came, 60.0, f"for {count} entries")


def test_on_schedule_of_four_ranks_and_the_oldest_go(run_dir: RunDir) -> None:
    said = Journalled()
    ranks = Ranks(run_dir)
    try:
        schedule = TraceSchedule(run_dir, Trace(every_s=3600.0, keep=2, wait_s=60.0), said)
        for hour in range(3):
            state = replace(STEADY, t=10_000.0 + 3600 * hour, last_step_t=9_999.0 + 3600 * hour)
            schedule.attend(state, is_troubled=False)
            settle(schedule, state, said, hour + 1)
            schedule.attend(replace(state, t=state.t + 1800), is_troubled=False)
    finally:
        ranks.ends.set()
        ranks.thread.join()
    files = [f"scheduled-{t}/rank_{rank}.json.gz" for t in (13600, 17200) for rank in (0, 2, 4, 6)]
    assert taken(run_dir) == files
    assert said.entries[-1] == {
        "kind": "traces_taken", "name": "scheduled-17200", "ranks": [0, 2, 4, 6], "failed": {}, "removed": 4,
        "summary": "traces of ranks 0,2,4,6 taken, 4 old ones removed",
    }  # fmt: skip
    assert not run_dir.request("scheduled-10000").exists()
    again = TraceSchedule(run_dir, Trace(every_s=3600.0), said)
    again.attend(replace(STEADY, t=17_300.0, last_step_t=17_299.0), is_troubled=False)
    assert not run_dir.request("scheduled-17300").exists(), "another keeper goes on where this one stood"


@pytest.mark.parametrize(
    "state",
    [
        replace(STEADY, state="stalled"),
        replace(STEADY, state="starting"),
        replace(STEADY, phase="checkpoint_save"),
        replace(STEADY, last_step_t=STEADY.t - 60),
        replace(STEADY, p50_step_time_s=None),
        replace(STEADY, finished=True),
    ],
    ids=["stalled", "starting", "saves", "about to stall", "no pace", "over"],
)
def test_nothing_is_asked_of_a_run_that_does_not_go_on_steadily(run_dir: RunDir, state: RunState) -> None:
    TraceSchedule(run_dir, Trace(every_s=60.0), Journalled()).attend(state, is_troubled=False)
    assert list(run_dir.requests.iterdir()) == []


def test_nothing_is_asked_while_there_is_an_incident_or_another_request_or_no_schedule(
    run_dir: RunDir,
) -> None:
    TraceSchedule(run_dir, Trace(every_s=60.0), Journalled()).attend(STEADY, is_troubled=True)
    TraceSchedule(run_dir, Trace(), Journalled()).attend(STEADY, is_troubled=False)
    assert list(run_dir.requests.iterdir()) == []
    run_dir.request("stacks-1").write_text(json.dumps({"do": "stacks", "ranks": [0]}))
    TraceSchedule(run_dir, Trace(every_s=60.0), Journalled()).attend(STEADY, is_troubled=False)
    assert [it.name for it in run_dir.requests.iterdir()] == ["stacks-1.json"]


def test_only_what_the_schedule_asked_for_is_removed(run_dir: RunDir, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rank_0.json.gz").write_text("mine")
    kept = ["taken-5/rank_0.json.gz", "rank_0.json.gz", "scheduled-1/notes.txt", "scheduled-x/rank_0.json.gz"]
    gone = ["scheduled-1/rank_0.json.gz", "scheduled-2/rank_0.json.gz"]
    part_of_a_killed_rank = run_dir.traces() / "scheduled-1/.unfinished.rank_3.json.gz"
    newest = ["attempt_1/scheduled-3/rank_0.json.gz", "scheduled-2/rank_1.json.gz"]
    for name in (*kept, *gone, *newest):
        path = run_dir.traces() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    part_of_a_killed_rank.write_text("")
    (run_dir.traces() / "scheduled-0").symlink_to(outside)
    assert remove_oldest(run_dir, keep=1) == 2
    assert all((run_dir.traces() / name).exists() for name in (*kept, *newest))
    assert not any((run_dir.traces() / name).exists() for name in gone)
    assert not part_of_a_killed_rank.exists()
    assert (outside / "rank_0.json.gz").read_text() == "mine"


def taken_of(run_dir: RunDir) -> list[Mapping[str, Any]]:
    return [it for it in journal.read(run_dir.journal).entries if it["kind"] == "traces_taken"]


def test_a_keeper_asks_the_ranks_of_its_run(tmp_path: Path) -> None:
    made = fleet.write(tmp_path / "r42", hosts=1, ranks_per_host=2, steps=100, fault="slow_rank")
    config = Config(trace=Trace(every_s=60.0, wait_s=0.1))
    said: list[str] = []
    keeper = Keeper(made.run_dir, config, Console(said.append), RunClock(lambda: made.t))
    try:
        wait_until(lambda: (keeper.turn(), taken_of(made.run_dir))[1])
        asked = list(made.run_dir.requests.glob("scheduled-*.json"))
        written = taken_of(made.run_dir)
    finally:
        keeper.close()
    assert keeper.state.state == "running"
    request = json.loads(asked[0].read_text())
    assert (request["do"], request["ranks"], request["steps"]) == ("profile", [0, 1], 3)
    assert [it["ranks"] for it in written] == [[]], "one entry a taking, also of one that brought nothing"
    assert any("no trace was taken (rank 0: " in line for line in said)
