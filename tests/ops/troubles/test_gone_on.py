"""A save that failed long before, and from which the run went on, is not what it stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.cascades import Ranks
from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.run_dir import RunDir

FULL = "OSError: [Errno 28] No space left on device"


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    (tmp_path / "r42").mkdir()
    ranks = Ranks(RunDir(tmp_path / "r42"), 4)
    ranks.start()
    ranks.steps(30)
    return ranks


def after_a_raise(ranks: Ranks) -> Diagnosis:
    ranks.line(2, late_s=0.2, event="exception", type="ValueError", message="bad batch")
    return diagnose(ranks.run, Config(), at=ranks.t + 120)


@pytest.mark.parametrize("went_on", [4, 60])
def test_what_was_raised_some_steps_later_is_the_cause(ranks: Ranks, went_on: int) -> None:
    ranks.event("ckpt_failed", [0], error=FULL)
    ranks.steps(went_on)
    found = after_a_raise(ranks)
    assert (found.cause, found.ranks) == ("hang.rank_died", (2,))
    assert "rank 2 on n1: ValueError: bad batch" in found.evidence[0]


def test_a_later_save_that_succeeded_tells_that_it_went_on(ranks: Ranks) -> None:
    """Of earlier attempts too, whose steps are not looked at again."""
    for attempt in range(1, 6):
        ranks.event("ckpt_failed", [0], error=FULL)
        ranks.steps(1)
        ranks.save()
        ranks.line(2, event="exception", type="ValueError", message="bad batch")
        if attempt < 5:
            ranks.t += 30
            ranks.start(attempt, ranks.step)
            ranks.steps(5)
    found = diagnose(ranks.run, Config(), at=ranks.t + 60)
    assert (found.cause, found.ranks) == ("restart_loop", (2,))
    assert "rank 2 on n1: ValueError: bad batch" in found.evidence[0]


@pytest.mark.parametrize("went_on", [0, 2])
def test_what_comes_right_after_it_may_have_come_of_it(ranks: Ranks, went_on: int) -> None:
    """A save beside the steps fails while they go on, and ends the run by the next look at it."""
    ranks.event("ckpt_failed", [0], error=FULL)
    ranks.steps(went_on)
    ranks.event("exception", type="CheckpointException", message="save failed")
    found = diagnose(ranks.run, Config(), at=ranks.t + 120)
    assert (found.cause, found.ranks) == ("checkpoint_failing", ())
    assert f"a checkpoint could not be saved: {FULL}" in found.evidence[0]
