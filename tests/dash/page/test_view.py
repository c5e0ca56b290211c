"""What is said first, and what is said of each rank."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dash.page.views import diagnosis, healthy, hung, incident, stall
from dash.states import T0, running, with_rank
from train_ledger.answer import SlowAnswer, to_json
from train_ledger.dash.page.view import PageView, headline, rank_rows
from train_ledger.ledger.state import STATES, RunState


def words(view: PageView) -> dict[int, str]:
    return {row.rank.rank: row.word for row in rank_rows(view)}


def test_a_healthy_run_says_so_and_at_what_pace() -> None:
    first = headline(healthy())
    assert first.tone == "fine"
    assert first.text.startswith("nothing wrong: step 100, one every 1")


def test_the_verdict_goes_first() -> None:
    first = headline(hung())
    assert first.tone == "trouble"
    assert first.text == "culprit: rank 5 on node0"


def test_until_there_is_a_verdict_the_page_itself_goes_first() -> None:
    first = headline(PageView(hung().state, (stall(),), (incident(),)))
    assert first.text == "no step completed for 97 s (limit 90 s); the last was step 51300, attempt 0"


def test_a_verdict_of_an_earlier_incident_is_not_said_of_a_new_one() -> None:
    view = hung()
    old = ({"kind": "verdict", "incident": "an-earlier-one", "diagnosis": {}},)
    assert headline(replace(view, journal=old)).text.startswith("no step completed")
    over = replace(view, alerts=(), incidents=(), state=running(t=T0 + 9000))
    assert headline(over).tone == "fine"
    assert over.current_diagnosis is None


def test_a_verdict_that_an_earlier_keeper_found_is_read_from_the_journal() -> None:
    reborn = replace(hung(), diagnosis=None)
    assert reborn.current_diagnosis == diagnosis()
    broken = ({"kind": "verdict", "incident": incident().id, "diagnosis": {"cause": 7}},)
    assert replace(reborn, journal=broken).current_diagnosis is None


def test_a_run_with_a_rank_that_raised_is_not_called_healthy() -> None:
    state = with_rank(
        with_rank(running(t=T0 + 500), 1, gone_t=T0 + 499), 2, exception="RuntimeError: CUDA error"
    )
    first = headline(PageView(state))
    assert first.tone == "unsure"
    assert first.text == "rank 1: gone; rank 2: raised – no alert so far, step 100"


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_a_sentence(state: str) -> None:
    assert headline(PageView(RunState("r42", T0, state=state))).text
    assert headline(PageView(running(t=T0, state=state))).text


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


def test_a_verdict_of_a_slow_run_is_read_from_the_journal_too() -> None:
    slow = SlowAnswer("slow", "slow.straggler.software", "rank", culprits=(5,), suspects=())
    told = replace(diagnosis(), cause="slow.straggler.software", details=slow)
    entry = {"kind": "verdict", "incident": incident().id, "diagnosis": to_json(told)}
    reborn = replace(hung(), diagnosis=None, journal=(entry,))
    assert reborn.current_diagnosis == told
