"""What the page is handed of a keeper: verdict and picture belong together, in the next keeper too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dash.page.nights import picture_of_mesh
from train_ledger.answer import Diagnosis, HangAnswer
from train_ledger.chaos import fleet
from train_ledger.config import FIRST_ANSWERS, Config, Respond
from train_ledger.dash.page.parts import parts
from train_ledger.dash.page.view import PageView
from train_ledger.run_dir import RunDir
from train_ledger.watch import Keeper
from train_ledger.watch.clock import RunClock
from train_ledger.watch.console import Console
from train_ledger.watch.respond import Collected, FirstAnswers
from train_ledger.watch.view import view
from waiting import wait_until

PICTURE = picture_of_mesh(8, 5)


def answers(*_: Any) -> FirstAnswers:
    """As if all ranks had been dumped and one stack had not been had."""
    collected = Collected(tuple(range(8)), tuple(range(7)), {("stacks", 7): "no such process"}, 1.0)
    found = Diagnosis("stalled", "hang.host", (5,), details=HangAnswer("hang", (5,), "high"))
    return FirstAnswers(collected, found, PICTURE)


@pytest.fixture
def run(tmp_path: Path) -> tuple[RunDir, float]:
    made = fleet.write(tmp_path / "r42", fault="hang", culprit=5, hosts=2, ranks_per_host=4)
    return made.run_dir, made.t


def keeper_of(run_dir: RunDir, t: float) -> Keeper:
    config = Config(respond=Respond(on_page=FIRST_ANSWERS))
    return Keeper(run_dir, config, Console(lambda _: None), RunClock(lambda: t), answers)


def test_the_next_keeper_hands_over_the_same_verdict_and_picture(run: tuple[RunDir, float]) -> None:
    shown = []
    for _ in range(2):
        keeper = keeper_of(*run)
        try:
            wait_until(lambda keeper=keeper: keeper.turn() or keeper.is_told, 60)  # type: ignore[misc]
            shown.append(view(keeper))
        finally:
            keeper.close()
    for each in shown:
        assert each.current_diagnosis is not None
        assert each.current_diagnosis.ranks == (5,)
        assert each.picture == PICTURE
        made = parts(each)
        assert "has not come" in made["waits"]
        assert "8 dumps and 7 stacks in 1.0 s; no stacks of rank 7: no such process" in made["incident"]
        assert made["waits"] == parts(shown[0])["waits"]


def test_a_verdict_does_not_wait_until_its_report_is_written(
    run: tuple[RunDir, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large run the draft of its postmortem takes seconds, in which nobody looks at an old page."""
    shown: list[PageView] = []

    def written(*_: Any) -> list[str]:
        shown.append(view(keeper))
        return []

    monkeypatch.setattr("train_ledger.watch.desk.write_records", written)
    keeper = keeper_of(*run)
    try:
        wait_until(lambda: keeper.turn() or bool(shown), 60)  # type: ignore[func-returns-value]
    finally:
        keeper.close()
    assert shown[0].current_diagnosis is not None
    assert shown[0].current_diagnosis.ranks == (5,)
