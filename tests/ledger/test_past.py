"""As known at a moment in the past."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.facts import Event, Fault
from train_ledger.ledger import Fold, RunState, dated, known_at
from train_ledger.sources import read_all


def state_at(job: fleet.Fleet, t: float) -> RunState:
    fold = Fold("run", Config(), job.run_dir.read_run())
    fold.add_all(known_at(read_all(job.run_dir), t))
    return fold.state(t)


@pytest.mark.parametrize("offset_s", [0.0, 600.0, -200.0])
def test_a_hang_is_seen_when_it_was_there_whatever_one_hosts_clock_says(
    tmp_path: Path, offset_s: float
) -> None:
    job = fleet.write(tmp_path / "run", fault="hang", culprit=3, clock_offsets_s={"node001": offset_s})
    assert job.fault_t is not None
    before, soon, later = (state_at(job, job.fault_t + after_s) for after_s in (-10.5, 60, 100))
    assert (before.state, before.step) == ("running", 39)
    assert (soon.state, soon.step) == ("running", 50)
    assert (later.state, later.step) == ("stalled", 50)
    assert all(rank.step == 39 for rank in before.ranks.values())


def test_before_anything_was_written_nothing_is_known(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "run")
    assert known_at(read_all(job.run_dir), fleet.START_T - 1) == []


def test_the_end_is_not_known_before_it_came(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "run")
    assert state_at(job, job.t - 1).state == "running"
    assert state_at(job, job.t + 1).state == "finished"


def test_what_says_no_time_is_known() -> None:
    untimed = Fault(None, "oom", rank=1)
    late = Event(50.0, "run_end", 0)
    assert known_at([untimed, late], 10.0) == [untimed]


def test_each_fact_has_its_time_on_the_runs_clock_and_its_hosts_lead(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "run", clock_offsets_s={"node001": 600.0})
    leads = {it.fact.host: round(it.lead_s) for it in dated(read_all(job.run_dir))}
    assert leads == {"node000": 0, "node001": 600}
    latest_t = max(it.t for it in dated(read_all(job.run_dir)) if it.t is not None)
    assert latest_t == pytest.approx(job.t, abs=1.0)
