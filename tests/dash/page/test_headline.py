"""What is said first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dash.page.views import healthy, hung, incident, stall
from dash.states import T0, running, with_rank
from train_ledger.dash.page.headline import headline
from train_ledger.dash.page.view import PageView
from train_ledger.ledger.state import STATES, RunState


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
