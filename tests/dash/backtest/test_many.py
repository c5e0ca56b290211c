"""Several runs at once: what cannot be judged is told, and stops nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from train_ledger.dash.backtest import Backtest, NotJudged, backtest_all
from train_ledger.dash.backtest.outcome import Outcome
from train_ledger.run_dir import RunDirError

NOTHING = Outcome((), (), ())


def judge(run: Path) -> Backtest:
    if run.name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if run.name == "broken":
        raise RunDirError(f"{run}/run.json: no JSON")
    if run.name == "locked":
        raise PermissionError(13, "Permission denied", str(run))
    return Backtest(run.name, str(run), None, None, (), NOTHING, False, ())


def came_of(*names: str) -> list[str]:
    found = dict(backtest_all([Path(name) for name in names], judge))
    told = (found[place] for place in range(len(names)))
    return [it.why if isinstance(it, NotJudged) else it.run for it in told]


def test_one_that_cannot_be_read_stops_none_of_the_others() -> None:
    assert came_of("a", "broken", "locked", "b") == [
        "a",
        "broken/run.json: no JSON",
        "locked: Permission denied",
        "b",
    ]


def test_one_that_is_too_much_for_the_machine_takes_none_of_the_others_with_it() -> None:
    a, killed, b = came_of("a", "killed", "b")
    assert (a, b) == ("a", "b")
    assert "was killed" in killed


def test_a_single_run_is_judged_here() -> None:
    assert came_of("broken") == ["broken/run.json: no JSON"]
