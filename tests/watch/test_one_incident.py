"""A GPU falls off the bus and the run stands still: one page, and none for the stall that follows."""

import json
import threading

import pytest

from train_ledger.chaos import fleet
from train_ledger.watch.respond import respond
from watch.test_keeper import Watched, go_on

CULPRIT = 5


@pytest.fixture
def faulty(tmp_path):
    made = fleet.write(tmp_path / "r42", fault="hang", culprit=CULPRIT, hosts=2, ranks_per_host=4)
    fall_off_the_bus(made, made.fault_t + 1)
    watched = Watched(made, tmp_path, made.fault_t + 5)
    yield watched
    watched.keeper.close()


def fall_off_the_bus(made, t):
    host, gpu = made.hosts[CULPRIT // 4], CULPRIT % 4
    folder = made.run_dir.hardware
    folder.mkdir(exist_ok=True)
    line = f"{t:.6f} {host} kernel: NVRM: Xid (PCI:0000:{0x10 + gpu:02x}:00): 79, GPU has fallen off the bus."
    (folder / f"{host}.kern.log").write_text(line + "\n")


def turn_for(watched, seconds, by=5.0):
    for _ in range(round(seconds / by)):
        watched.clock.t += by
        watched.keeper.turn()


def test_the_stall_that_follows_a_fault_is_not_told(faulty):
    faulty.turn_until(lambda: "notification_done" in faulty.kinds())
    (page,) = faulty.messages()
    assert page["title"].startswith("r42: GpuXidError – ")
    for word in ("r42", "step", faulty.made.hosts[1], "gpu 1", "XID 79", "rank 5"):
        assert word in page["body"], word
    faulty.clock.t = faulty.made.t
    turn_for(faulty, 1200)
    stalls = [entry for entry in faulty.entries("alert_fired") if entry["alert"] == "TrainingStepStalled"]
    assert [entry["inhibited"] for entry in stalls] == [True]
    faulty.turn_until(lambda: not faulty.keeper._desk._answering)
    faulty.turn_until(lambda: faulty.keeper._desk._messages.is_idle)
    assert [message["title"] for message in faulty.messages()] == [page["title"]]


def test_it_is_looked_at_again_once_the_run_stands_still(faulty):
    faulty.turn_until(lambda: "notification_done" in faulty.kinds())
    faulty.clock.t = faulty.made.t
    faulty.turn_until(lambda: len(faulty.entries("verdict")) == 2)
    assert faulty.entries("verdict")[1]["diagnosis"]["cause"] == "hardware.xid"


def test_a_restart_that_stands_still_again_is_a_page(faulty):
    faulty.turn_until(lambda: "notification_done" in faulty.kinds())
    faulty.clock.t = go_on(faulty.made, faulty.made.t, attempt=1, steps=range(40, 90), then_silent=200)
    faulty.turn_until(lambda: len(faulty.entries("notification_done")) == 2)
    again = faulty.messages()[1]
    assert (again["level"], "stands still again" in again["title"]) == ("page", True)


def test_what_joins_while_the_page_waits_for_its_verdict_is_told_in_it_alone(tmp_path, monkeypatch):
    may_end = threading.Event()

    def slow(*asked):
        assert may_end.wait(120)
        return respond(*asked)

    monkeypatch.setattr("train_ledger.watch.desk.respond", slow)
    made = fleet.write(tmp_path / "r42", fault="hang", culprit=CULPRIT, hosts=2, ranks_per_host=4)
    stalled = Watched(made, tmp_path, made.t)
    stalled.turn_until(lambda: "response_started" in stalled.kinds())
    fall_off_the_bus(made, stalled.clock.t)
    stalled.turn_until(lambda: len(stalled.entries("alert_fired")) == 2)
    may_end.set()
    stalled.turn_until(lambda: "notification_done" in stalled.kinds())
    turn_for(stalled, 600)
    stalled.keeper.close()
    (page,) = stalled.messages()
    assert page["title"].startswith("r42: TrainingStepStalled")
    assert page["details"]["alerts"] == ["TrainingStepStalled", "GpuXidError"]


def test_an_ended_fault_releases_the_stall_that_still_holds(faulty):
    faulty.turn_until(lambda: "notification_done" in faulty.kinds())
    faulty.clock.t = faulty.made.t
    turn_for(faulty, 2700)
    faulty.turn_until(lambda: len(faulty.entries("notification_done")) == 2)
    update = faulty.messages()[1]
    assert update["level"] == "record", "an update to the page, not a second page"
    assert update["title"].startswith("r42: also TrainingStepStalled")


def test_what_stood_in_the_page_and_comes_back_later_is_told_as_an_update(tmp_path):
    made = fleet.write(tmp_path / "r42", hosts=2, ranks_per_host=4, step_time_s=60.0)
    step_done(made, made.t, 101, "NaN")
    fall_off_the_bus(made, made.t + 1)
    watched = Watched(made, tmp_path, made.t + 2)
    watched.turn_until(lambda: "notification_done" in watched.kinds())
    for step in range(102, 128):
        step_done(made, watched.clock.t, step, "NaN" if step == 125 else 2.0)
        turn_for(watched, 60, by=60)
    watched.turn_until(lambda: len(watched.entries("notification_done")) == 2)
    watched.keeper.close()
    page, update = watched.messages()
    assert page["details"]["alerts"] == ["TrainingLossNotFinite", "GpuXidError"]
    assert update["details"]["alerts"] == ["TrainingLossNotFinite"]


def step_done(made, t, step, loss):
    for rank in range(made.world_size):
        line = {"t": t, "step": step, "rank": rank, "attempt": 0, "loss": loss}
        with made.run_dir.signals_of(rank).open("a") as file:
            file.write(json.dumps(line) + "\n")
