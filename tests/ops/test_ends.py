"""What is read of a long run's past lies before the moment that is asked about, and is enough to judge by."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.cascades import Ranks
from train_ledger.config import Config
from train_ledger.facts import Step
from train_ledger.ops import diagnose
from train_ledger.ops.ends import ends_after, facts_before
from train_ledger.run_dir import RunDir


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    (tmp_path_factory.mktemp("long") / "run").mkdir()
    made = Ranks(RunDir(tmp_path_factory.getbasetemp() / "long0" / "run"), 4)
    made.start()
    made.steps(3000, tflops=400.0, mem_allocated_peak=42_000_000_000, rss_bytes=9_000_000_000)
    return made


@pytest.mark.parametrize("back", [1, 7, 100, 777, 1500, 2900])
def test_of_each_rank_twenty_steps_before_the_moment_are_read_wherever_it_lies(
    ranks: Ranks, back: int
) -> None:
    t = ranks.t - back
    told = [it for it in facts_before(ranks.run, t, 1) if isinstance(it, Step)]
    for rank in range(4):
        before = [it.step for it in told if it.rank == rank and it.t <= t]
        assert before[-1] == ranks.step - back
        assert before[-20:] == list(range(before[-1] - 19, before[-1] + 1))


def test_whether_there_is_more_behind_a_moment_is_told_by_the_ends(ranks: Ranks) -> None:
    assert ends_after(ranks.run, ranks.t - 1)
    assert not ends_after(ranks.run, ranks.t)


@pytest.mark.parametrize("back", [100, 1500])
def test_a_healthy_run_is_so_at_every_moment_of_its_past(
    ranks: Ranks, back: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train_ledger.ops.observing.WHOLE_BYTES", 1 << 16)
    monkeypatch.setattr("train_ledger.ops.observing._RANK_BYTES", 1 << 14)
    monkeypatch.setattr("train_ledger.ops.observing._PAST_BYTES", 1 << 14)
    found = diagnose(ranks.run, Config(), at=ranks.t - back)
    assert (found.state, found.cause) == ("running", "none")


def test_restarts_in_quick_succession_are_seen_in_the_middle_of_long_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WHOLE_BYTES", "_RANK_BYTES", "_PAST_BYTES"):
        monkeypatch.setattr(f"train_ledger.ops.observing.{name}", 1 << 14)
    ranks = Ranks(RunDir(tmp_path), 2)
    ranks.start()
    ranks.steps(600)
    for attempt in (1, 2, 3, 4):
        ranks.event("exception", type="OSError", message="[Errno 28] No space left on device")
        ranks.t += 20
        ranks.start(attempt, 300)
        ranks.steps(290 if attempt < 4 else 5)
    loop_t = ranks.t
    ranks.steps(2000)
    found = diagnose(ranks.run, Config(), at=loop_t)
    assert found.cause == "restart_loop"
    assert any("No space left on device" in line for line in found.evidence)
    assert diagnose(ranks.run, Config(), at=ranks.t).cause == "none"
