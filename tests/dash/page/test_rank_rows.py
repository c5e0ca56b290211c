"""What is said of each rank."""

from __future__ import annotations

from dataclasses import replace

from dash.page.views import hung
from dash.states import T0, running, with_rank
from train_ledger.dash.page.rank_rows import rank_rows
from train_ledger.dash.page.view import PageView


def words(view: PageView) -> dict[int, str]:
    return {row.rank.rank: row.word for row in rank_rows(view)}


def test_the_ranks_that_wait_are_not_accused_and_not_called_fine() -> None:
    assert words(hung()) == {5: "culprit", **dict.fromkeys([0, 1, 2, 3, 4, 6, 7], "waiting")}
    undecided = replace(hung(), diagnosis=None, journal=())
    assert words(undecided) == {5: "behind", **dict.fromkeys([0, 1, 2, 3, 4, 6, 7], "standing")}


def test_the_worst_is_said_of_a_rank() -> None:
    state = running(t=T0 + 500, ranks=7, world_size=8)
    state = with_rank(state, 1, gone_t=T0 + 499, signal=9)
    state = with_rank(state, 2, exception="RuntimeError: CUDA error")
    state = with_rank(state, 3, nonfinite_step=100, nonfinite_total=1)
    state = with_rank(state, 4, ended=True, gone_t=T0 + 499)
    state = with_rank(state, 5, step=99)
    state = with_rank(state, 6, step=90)
    rows = {row.rank.rank: (row.word, row.detail) for row in rank_rows(PageView(state))}
    assert rows == {
        0: ("fine", ""),
        1: ("gone", "signal 9"),
        2: ("raised", "RuntimeError: CUDA error"),
        3: ("not finite", "the loss of step 100"),
        4: ("ended", ""),
        5: ("fine", ""),
        6: ("behind", "10 steps behind"),
        7: ("silent", "nothing heard in this attempt"),
    }
