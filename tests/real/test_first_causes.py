"""Real logs of jobs that died: who fell first is named with the line, and those that waited are ruled out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ops import diagnose
from train_ledger.run_dir import RunDir

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="real logs are not here")


def found(tmp_path: Path, name: str) -> Diagnosis:
    (tmp_path / "logs").mkdir()
    shutil.copy(LOGS / name, tmp_path / "logs")
    return diagnose(RunDir(tmp_path), Config())


def test_the_file_that_one_host_misses_not_the_timeouts_of_the_other_ten_minutes_later(
    tmp_path: Path,
) -> None:
    told = found(tmp_path, "17b_nccl_watchdog_dual8.log")
    assert (told.cause, told.ranks, told.hosts) == ("hang.rank_died", (4,), ("10.0.0.2",))
    assert told.evidence[0].startswith("first cause: rank 4 on 10.0.0.2: FileNotFoundError: ")
    assert "17b_nccl_watchdog_dual8.log:1040)" in told.evidence[0]
    assert any("rank 0: timed out in ALLREDUCE number 2, 593 s later" in line for line in told.evidence)
    assert "rank 0 as the cause" in [it.cause for it in told.ruled_out]
    assert told.impact is not None
    assert told.impact.wall_s == pytest.approx(656, abs=5)
    assert told.impact.gpu_hours == pytest.approx(8 * 656 / 3600, rel=0.02)


def test_the_rank_that_the_launcher_saw_fail_not_the_fifteen_that_it_ended(tmp_path: Path) -> None:
    told = found(tmp_path, "17c_torchrun_sigterm_childfailed.log")
    assert (told.cause, told.ranks, told.hosts) == ("hang.rank_died", (1,), ("dgx2-1",))
    assert "ranks 0,2-15 as the cause" in [it.cause for it in told.ruled_out]
    assert any("ModuleNotFoundError: No module named 'apex'" in line for line in told.evidence)


def test_the_rank_that_was_killed_though_the_survivors_are_printed_before(tmp_path: Path) -> None:
    told = found(tmp_path, "23a_torchrun_2.13_sigkill_real.log")
    assert (told.cause, told.ranks, told.confidence) == ("hang.rank_died", (1,), "high")
    assert "first cause: rank 1: killed (SIGKILL), at " in told.evidence[0]
    assert "ranks 0,2 as the cause" in [it.cause for it in told.ruled_out]


def test_the_rank_that_raised(tmp_path: Path) -> None:
    told = found(tmp_path, "23b_torchrun_2.13_exception_real.log")
    assert (told.cause, told.ranks, told.confidence) == ("hang.rank_died", (1,), "high")
    assert "RuntimeError: boom (at train.py:11)" in told.evidence[0]


@pytest.mark.parametrize(
    "name", ["23c_torchrun_2.13_stall20s_recovered_real.log", "11b_llmc_main_2024_head3000.log"]
)
def test_where_nobody_fell_nobody_is_named(tmp_path: Path, name: str) -> None:
    told = found(tmp_path, name)
    assert (told.ranks, told.hosts) == ((), ())
