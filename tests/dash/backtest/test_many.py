"""Several runs at once: what cannot be judged is told, and stops nothing."""

from __future__ import annotations

from pathlib import Path

from dash.backtest.judging import judge
from train_ledger.dash.backtest import NotJudged, backtest_all


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
