"""What is read of a long run's ends says the same as all of it, now and of a moment in the past."""

from __future__ import annotations

import pytest

from train_ledger.chaos import fleet
from train_ledger.config import Config
from train_ledger.ledger import Fold, Memory
from train_ledger.ops import diagnose, observe, observing
from train_ledger.sources import RunFacts

FAULTS = ("hang", "exception", "nan", "restart", "checkpoint_failed", "slow_rank", None)


def written(path, fault):
    return fleet.write(
        path / "run", fault=fault, culprit=5, hosts=2, ranks_per_host=4, steps=1000, fault_step=900,
        checkpoint_every=50, clock_offsets_s={"node001": 300.0},
    )  # fmt: skip


def seen(found):
    return found.state, found.cause, found.ranks, found.hosts


@pytest.fixture
def ends_alone(monkeypatch):
    """Reads of each file as little as of a run of a thousand ranks."""

    def begin():
        monkeypatch.setattr(observing, "WHOLE_BYTES", 1)
        monkeypatch.setattr(observing, "_PAST_BYTES", 8 * (24 << 10))

    return begin


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("back_s", [-5.0, 60.5])
def test_the_ends_say_what_the_whole_says(tmp_path, ends_alone, fault, back_s):
    made = written(tmp_path, fault)
    whole = diagnose(made.run_dir, Config(), at=made.t - back_s)
    ends_alone()
    ends = diagnose(made.run_dir, Config(), at=made.t - back_s)
    assert seen(ends) == seen(whole)
    assert any("not read" in line for line in ends.not_observed)


@pytest.mark.parametrize("fault", ["restart", None])
def test_restarts_are_those_of_the_whole_and_effective_time_is_not_told(tmp_path, ends_alone, fault):
    made = written(tmp_path, fault)
    whole = observe(made.run_dir, Config(), at=made.t + 5).state
    ends_alone()
    ends = observe(made.run_dir, Config(), at=made.t + 5).state
    assert [it.number for it in ends.attempts] == [it.number for it in whole.attempts]
    assert (ends.step, ends.attempt, ends.state) == (whole.step, whole.attempt, whole.state)
    assert ends.productive is None  # it would be wrong


def test_a_moment_in_the_middle_knows_nothing_of_later_steps(tmp_path, ends_alone):
    made = written(tmp_path, None)
    ends_alone()
    state = observe(made.run_dir, Config(), at=made.t - 200.5).state
    assert state.state == "running"
    assert 750 <= state.step <= 820
    assert len(state.ranks) == 8


def test_what_a_keeper_wrote_down_is_taken_up(tmp_path):
    made = written(tmp_path, "restart")
    whole = diagnose(made.run_dir, Config(), at=made.t + 5)
    run = made.run_dir.read_run()
    fold, files = Fold(made.run_dir.name_in(run), Config(), run), RunFacts(made.run_dir)
    files.fold_into(fold)
    while not files.caught_up:
        files.fold_into(fold)
    made.run_dir.ledger.mkdir(exist_ok=True)
    assert Memory(made.run_dir.ledger / "keeper.memory", run, None).keep(fold, files)
    files.close()
    assert seen(diagnose(made.run_dir, Config(), at=made.t + 5)) == seen(whole)
    (made.run_dir.ledger / "keeper.memory").write_bytes(b"damaged")
    assert seen(diagnose(made.run_dir, Config(), at=made.t + 5)) == seen(whole)
