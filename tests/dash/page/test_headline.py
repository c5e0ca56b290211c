"""What is said first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dash.page.views import healthy, hung, incident, stall
from dash.states import T0, running, with_rank
from train_ledger.answer import Diagnosis, SlowAnswer, to_json
from train_ledger.dash.incident import Incidents
from train_ledger.dash.judge import Alert, Transition
from train_ledger.dash.page.headline import headline
from train_ledger.dash.page.parts import parts
from train_ledger.dash.page.rank_rows import rank_rows
from train_ledger.dash.page.view import PageView
from train_ledger.ledger.state import STATES, Attempt, RunState


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


def test_a_run_that_is_still_slow_when_its_alert_has_gone_is_not_called_healthy() -> None:
    """The alert compares with the run's own last hours, and after a while these are slow, too."""
    state = replace(running(t=T0 + 500), p50_step_time_s=40.0)
    details = SlowAnswer("slow", "slow.communication", slower=True, before_s=12.0, now_s=40.0)
    found = to_json(Diagnosis("running", "slow.communication", details=details))
    told = ({"t": T0 + 100, "kind": "verdict", "incident": "an-earlier-one", "diagnosis": found},)
    view = PageView(state, journal=told, run_path="runs/r42")
    first = headline(view)
    assert first.tone == "unsure"
    assert first.text == "still slow: a step takes 40 s, before the incident it took 12 s – step 100"
    assert "train-ledger slow runs/r42" in parts(view)["verdict"]
    for better in (
        replace(view, state=replace(state, p50_step_time_s=12.5)),
        replace(view, state=replace(state, attempts=(Attempt(1, T0 + 200),))),
    ):
        assert headline(better).tone == "fine"
        assert "train-ledger slow" not in parts(better)["verdict"]


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


def _resumed() -> PageView:
    """The hang of `hung` 40 s after its steps came again, the alert not resolved yet."""
    view = hung()
    t = T0 + 5100
    state = running(t=t, ranks=8, step=51340)
    back = {
        "t": t - 40,
        "kind": "state_changed",
        "state": "running",
        "before": "stalled",
        "step": 51301,
    }
    alerts = (replace(stall(), gone_t=t - 40),)
    return replace(view, state=state, alerts=alerts, journal=(*view.journal, back))


def test_a_run_whose_steps_go_on_again_is_not_told_as_one_that_stands_while_its_alert_is_still_open() -> None:
    first = headline(_resumed())
    assert first.tone == "unsure"
    assert first.text == (
        "steps go on again since 17:24:20Z: step 51340; not resolved yet: TrainingStepStalled"
    )


def test_without_a_verdict_the_summary_of_the_stall_is_not_told_of_a_run_that_goes_on() -> None:
    view = replace(_resumed(), diagnosis=None, journal=())
    first = headline(view)
    assert first.text.startswith("steps go on again since ")
    no_judge = headline(replace(view, alerts=()))  # `top` began after steps had come again
    assert no_judge.text == "steps go on again: step 51340; not resolved yet: TrainingStepStalled"


def test_that_steps_go_on_again_hides_no_other_page_that_holds() -> None:
    view = _resumed()
    xid = Alert("GpuXidError", "page", {"run": "r42"}, T0 + 5050, "r42: XID 79 on node0, GPU 3", 79.0)
    assert headline(replace(view, alerts=(*view.alerts, xid), diagnosis=None, journal=())).text == (
        "XID 79 on node0, GPU 3"
    )
    both = Incidents()
    both.apply([Transition("fired", stall(), T0 + 4990), Transition("fired", xid, T0 + 5050)], T0 + 5050)
    held = replace(view, alerts=(*view.alerts, xid), incidents=both.open)
    assert headline(held).text == "culprit: rank 5 on node0"


def test_a_run_that_stands_once_more_is_told_as_one_that_stands() -> None:
    view = replace(_resumed(), state=hung().state, alerts=(stall(),))
    assert headline(view).text == "culprit: rank 5 on node0"


def test_of_a_run_that_goes_on_no_rank_is_called_the_culprit_or_waiting_but_what_it_was_is_kept() -> None:
    view = _resumed()
    assert {row.word for row in rank_rows(view)} == {"fine"}
    shown = parts(view)
    assert "What it was: culprit: rank 5" in shown["verdict"]
    assert "no longer so since" in shown["alerts"]
    assert "py-spy dump" not in shown["verdict"]  # it would look at a rank that goes on


def test_the_state_is_told_since_the_steps_came_again_and_not_since_before_they_stood() -> None:
    assert "since <time" in parts(_resumed())["clock"]
    assert "17:24:20Z" in parts(_resumed())["clock"]
    assert "17:24:20Z" not in parts(healthy())["clock"]


def test_of_a_run_that_restarts_the_old_figure_of_its_stall_is_not_told() -> None:
    restarting = running(t=T0 + 5100, state="restarting", step=None, attempt=1, last_step_t=T0 + 4903)
    alert = replace(stall(), gone_t=T0 + 5060)
    first = headline(PageView(restarting, (alert,), (incident(),)))
    assert first.text == "a restart is under way – no step yet"
    assert first.tone == "unsure"
