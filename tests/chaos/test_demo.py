"""The demo as a newcomer runs it: a real torchrun job hangs, and the planted rank is named."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from readme import DEMO, not_said
from train_ledger.chaos import MODES
from train_ledger.ledger import journal
from train_ledger.run_dir import RunDir

pytest.importorskip("torch", reason="the demo trains with torch: pip install 'train-ledger[demo]'")

_ELSEWHERE = ("exception", "exhausted", "skip", "order_swap")
"""The culprit stands no longer in the function by which it left."""
_ALWAYS_LIVE = ("sleep", "loader", "exhausted", "order_swap", "exception", "lock_gil")

_ONE_IS_ENOUGH = {"loader": 3, "order_swap": 0, "exception": 0, "lock_gil": 3}
"""Told by a stack, an order or an exception, whichever rank it is; the others are told by majority."""
_VERDICT_WITHIN_S = 90.0
"""From the page to the verdict of a living job of four ranks, where other programs have the cores too."""

PLANTED = [
    (mode, culprit) for mode in MODES for culprit in (0, 3) if _ONE_IS_ENOUGH.get(mode, culprit) == culprit
]


def demo(folder, *options):
    command = [sys.executable, "-m", "train_ledger", "demo", "--run", str(folder), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "culprit"), PLANTED)
def test_the_planted_rank_is_named(tmp_path, mode, culprit):
    status, outcome = demo(tmp_path / "run", "--mode", mode, "--culprit", str(culprit))
    log = (tmp_path / "run" / "watch.log").read_text()
    assert outcome["named"] == [culprit], log
    assert outcome["cause"] in MODES[mode].causes, log
    assert status == 0
    assert outcome["pages_received"] == 1
    assert outcome["job_start_to_verdict_s"] <= 240
    run = RunDir(tmp_path / "run")
    entries = journal.read(run.journal).entries
    paged_t = next(e["t"] for e in entries if e["kind"] == "alert_fired" and e["level"] == "page")
    found = next(e for e in entries if e["kind"] == "verdict")
    assert found["t"] - paged_t <= _VERDICT_WITHIN_S, log
    verdict = found["diagnosis"]
    assert verdict["impact"]["wall_s"] > 0
    assert verdict["impact"]["gpu_hours"] is None  # it trains on the CPU
    assert verdict["next"]
    assert "hung at step" in Path(outcome["postmortem"]).read_text()
    assert (mode, culprit) != ("loader", 3) or not_said(DEMO, log) == [], log  # the README shows this one
    assert mode not in _ALWAYS_LIVE or any(run.stacks().glob("rank_*.json"))
    lived = {path.name for path in run.stacks().glob("rank_*.json")}
    if lived:  # gloo may end a job over a mismatch; then there is nobody left to ask
        assert len(lived) == 4
        # A rank that is killed while it writes its dump anew leaves the hidden half of it beside the whole.
        written = {path.name for path in run.comm_traces().glob("[!.]*")}
        assert written == {f"rank_{rank}" for rank in range(4)}
        assert verdict["details"]["findings"][0]["frame"].startswith("faults.py:") or mode in _ELSEWHERE


@pytest.mark.slow
def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "mine.txt").touch()
    command = [sys.executable, "-m", "train_ledger", "demo", "--run", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is not empty" in done.stderr
