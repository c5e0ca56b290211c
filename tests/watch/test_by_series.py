"""A keeper that a Prometheus alone tells of its run."""

from __future__ import annotations

import json

import pytest

from ops.prometheus.test_cause import of_rank, sample, series
from train_ledger.config import Config, Notify
from train_ledger.ledger import journal
from train_ledger.run_dir import RunDir
from train_ledger.sources.prometheus import Address, PrometheusError
from train_ledger.watch.by_series import SeriesKeeper
from train_ledger.watch.console import Console
from waiting import wait_until


class Followed:
    """A Prometheus that holds what the test says; None is one that does not answer."""

    name = "r42"

    def __init__(self):
        self.now = series()
        self.asked = 0
        self.prometheus = type("Prometheus", (), {"address": Address.of("http://me:secret@prometheus:9090")})

    def series(self):
        self.asked += 1
        if self.now is None:
            raise PrometheusError("http://prometheus:9090: no answer within 10 s")
        return self.now


class Watched:
    def __init__(self, tmp_path):
        self.run_dir = RunDir(tmp_path / "kept")
        self.run_dir.path.mkdir()
        self.followed, self.said, self.ticks_s = Followed(), [], 1000.0
        told = tmp_path / "told.jsonl"
        self.told = told
        command = ("sh", "-c", f"cat >> {told}; echo >> {told}")
        config = Config(notify=Notify(command=command))
        console = Console(self.said.append)
        self.keeper = SeriesKeeper(self.run_dir, config, console, self.followed, ticks=lambda: self.ticks_s)

    def turn(self, times=1, every_s=5.0):
        for _ in range(times):
            self.keeper.turn()
            self.ticks_s += every_s

    def kinds(self):
        return [entry["kind"] for entry in journal.read(self.run_dir.journal).entries]

    def alerts(self):
        entries = journal.read(self.run_dir.journal).entries
        return [it["alert"] for it in entries if it["kind"] == "alert_fired"]


@pytest.fixture
def watched(tmp_path):
    made = Watched(tmp_path)
    yield made
    made.keeper.close()


def stalled():
    gone = of_rank(5, ago_s=300, up=0, process_gone_timestamp_seconds=1_800_000_000.0 - 290)
    return series(*(of_rank(rank, ago_s=300) for rank in range(8) if rank != 5), gone)


def test_a_run_that_steps_is_well(watched):
    watched.turn(3)
    assert (watched.keeper.state.state, watched.keeper.state.step) == ("running", 100)
    assert watched.alerts() == []


def test_prometheus_is_asked_once_an_interval(watched):
    watched.turn(10, every_s=1.0)
    assert watched.followed.asked == 2


def test_a_stall_is_paged_with_the_verdict_of_the_series(watched):
    watched.turn(2)
    watched.followed.now = stalled()
    watched.turn(2)
    wait_until(lambda: (watched.keeper.turn(), "notification_done" in watched.kinds())[1], 60.0)
    (message,) = [json.loads(line) for line in watched.told.read_text().splitlines() if line.strip()]
    assert message["title"].startswith("r42: TrainingStepStalled")
    assert "secret" not in json.dumps(message)
    assert set(watched.alerts()) <= {"TrainingStepStalled", "TrainingProcessGone"}


def test_a_prometheus_that_does_not_answer_is_no_run_that_stands(watched):
    watched.turn(2)
    watched.followed.now = None
    watched.turn(40)
    assert watched.alerts() == []
    assert watched.keeper.state.unreadable == "http://prometheus:9090: no answer within 10 s"
    watched.turn(40)
    assert watched.alerts() == ["TrainingTelemetryLost"]
    assert any("no answer within 10 s" in line for line in watched.keeper.not_read)


def test_before_its_first_answer_nothing_is_judged(watched):
    watched.followed.now = None
    watched.turn(100)
    assert watched.alerts() == []


def test_it_goes_on_when_it_answers_again(watched):
    watched.turn(2)
    watched.followed.now = None
    watched.turn(5)
    watched.followed.now = series([sample("train_step", 101, instance="n0:9466", rank="0")])
    watched.turn(2)
    assert watched.keeper.state.unreadable is None
    assert watched.keeper.not_read == ()
