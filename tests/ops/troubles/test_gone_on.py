"""A save that failed long before, and from which the run went on, is not what it stands for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops.cascades import Ranks
from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.run_dir import RunDir

T0 = 1_790_000_000.0
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


def told(run: RunDir, behind_s: float, *, others: int = 0, later: int = 0) -> Diagnosis:
    """The save of step 60 fails on the second host, whose clock is behind, and its rank raises for that.

    So does the save of the first `others` ranks; all of them take `later` steps before that.
    """
    run.signals.mkdir(parents=True)
    run.run_json.write_text(json.dumps({"run": "r42", "world_size": 2}))
    for rank in range(2):
        t = T0 - behind_s * rank
        about = {"rank": rank, "attempt": 0}
        failed = {**about, "t": t + 60.5, "event": "ckpt_failed", "step": 60, "error": FULL}
        raised = {
            **about,
            "t": t + 61 + later,
            "event": "exception",
            "type": "ValueError",
            "message": "no file",
        }
        lines = [
            {**about, "t": t, "event": "run_start", "world_size": 2, "host": f"n{rank}", "pid": 100 + rank},
            *({**about, "t": t + step, "step": step, "loss": 2.0} for step in range(1, 61)),
            *([failed] if rank == 1 or rank < others else []),
            *({**about, "t": t + step, "step": step, "loss": 2.0} for step in range(61, 61 + later)),
            *([raised] if rank == 1 else []),
        ]
        run.signals_of(rank).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return diagnose(run, Config(), at=T0 + 400)


@pytest.mark.parametrize("behind_s", [0.0, 60.0, -60.0])
def test_no_clock_of_another_host_makes_a_failed_save_one_in_passing(tmp_path: Path, behind_s: float) -> None:
    found = told(RunDir(tmp_path / "r42"), behind_s)
    assert (found.cause, found.ranks) == ("checkpoint_failing", ())


@pytest.mark.parametrize("behind_s", [0.0, 60.0, -60.0])
def test_what_one_rank_went_on_from_all_did(tmp_path: Path, behind_s: float) -> None:
    found = told(RunDir(tmp_path / "r42"), behind_s, others=1, later=40)
    assert (found.cause, found.ranks) == ("hang.rank_died", (1,))
