"""Simulated jobs: what they write is what signals would write, and each fault gives its state."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.facts import Event, Step
from train_ledger.fields import EVENTS, FIELDS, PHASES
from train_ledger.ledger import Fold, RunState
from train_ledger.sources import RunFiles, read_all


def folded(job: fleet.Fleet, t: float | None = None) -> RunState:
    fold = Fold("run", Config(), job.run_dir.read_run())
    fold.add_all(fact for fact in read_all(job.run_dir) if t is None or (fact.t is not None and fact.t <= t))
    return fold.state(job.t if t is None else t)


@pytest.mark.parametrize("fault", fleet.FAULTS)
def test_each_fault_gives_its_state(tmp_path: Path, fault: str | None) -> None:
    job = fleet.write(tmp_path / "run", fault=fault, culprit=3, checkpoint_every=20)
    assert folded(job).state == job.state


@pytest.mark.parametrize("fault", fleet.FAULTS)
def test_nor_do_skewed_clocks_change_it(tmp_path: Path, fault: str | None) -> None:
    job = fleet.write(tmp_path / "run", fault=fault, culprit=3, clock_offsets_s={"node001": 600.0})
    assert folded(job).state == job.state


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 100),
    hosts=st.integers(1, 3),
    ranks_per_host=st.integers(1, 3),
    step_time_s=st.sampled_from([0.05, 1.0, 12.0, 300.0]),
    checkpoint_every=st.sampled_from([0, 1, 7]),
)
def test_a_healthy_fleet_is_never_in_trouble(tmp_path: Path, **job_like: Any) -> None:
    name = hashlib.sha256(json.dumps(job_like).encode()).hexdigest()[:12]
    job = fleet.write(tmp_path / name, steps=30, **job_like)
    facts = read_all(job.run_dir)
    fold = Fold("run", Config(), job.run_dir.read_run())
    seen = set()
    for fact, following in zip(facts, [*facts[1:], None], strict=True):
        fold.add(fact)
        if fact.t is not None and following and following.t is not None and following.t > fact.t + 0.02:
            seen |= {fold.state(fact.t).state, fold.state(following.t).state}  # after a line, before the next
    assert seen <= {"starting", "running"}
    assert fold.state(job.t + 100_000).state == "finished"


def test_the_lines_are_those_of_the_contract(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "run", fault="restart", culprit=1, checkpoint_every=10)
    files = RunFiles(job.run_dir)
    facts = files.poll()
    assert not files.bad_lines
    for fact in facts:
        if isinstance(fact, Step):
            assert set(fact.values) <= set(FIELDS)
        else:
            assert isinstance(fact, Event)
            assert fact.name in EVENTS
            assert fact.details.get("phase", "data") in PHASES


def test_a_line_has_its_head_first_and_no_spaces(tmp_path: Path) -> None:
    job = fleet.write(tmp_path / "run", steps=3)
    *_, last, end = job.run_dir.signals_of(5).read_text().splitlines()
    assert last.startswith('{"t":18000000')
    assert list(json.loads(last))[:4] == ["t", "step", "rank", "attempt"]
    assert list(json.loads(end)) == ["t", "rank", "attempt", "event"]


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    one, two, other = (
        fleet.write(tmp_path / name / "run", fault="nan", seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    for path in sorted(one.run_dir.path.rglob("*.json*")):
        assert path.read_bytes() == (two.run_dir.path / path.relative_to(one.run_dir.path)).read_bytes()
    assert one.run_dir.signals_of(0).read_bytes() != other.run_dir.signals_of(0).read_bytes()


def test_the_culprit_is_told_only_where_somebody_is_to_blame(tmp_path: Path) -> None:
    assert fleet.write(tmp_path / "a", fault="hang", culprit=9).culprits == (9,)
    assert fleet.write(tmp_path / "b", fault="killed", culprit=9).culprits == ()


def test_a_thousand_ranks_are_written_and_folded_in_seconds(tmp_path: Path) -> None:
    began = time.process_time()
    job = fleet.write(tmp_path / "run", hosts=128, steps=20, fault="hang", culprit=517)
    run = folded(job)
    assert (run.state, len(run.ranks), run.ranks[517].phase) == ("stalled", 1024, "data")
    assert time.process_time() - began < 10
