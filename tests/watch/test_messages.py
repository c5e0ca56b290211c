import pytest

from train_ledger.config import Config, Respond
from train_ledger.dash import Action, Alert, Incident, Member
from train_ledger.watch.messages import (
    incident_of,
    page_id,
    page_message,
    repeat_message,
    resolved_message,
    update_message,
)

STALLED = Alert("TrainingStepStalled", "page", {"run": "r42"}, 100.0, "r42: no step for 95 s", 95.0)
INCIDENT = Incident("20270115T080000Z-TrainingStepStalled", "r42", 100.0, (Member(STALLED),))


def test_a_page_names_run_alert_and_culprit_in_its_title():
    verdict = {"cause": "hang.host", "ranks": [3, 4, 5], "confidence": "high", "evidence": ["asleep"]}
    page = page_message(Config(), "r42", INCIDENT, verdict)
    assert page.title == "r42: TrainingStepStalled – culprit: ranks 3-5 (hang.host)"
    assert "- asleep" in page.body
    assert page.id == page_id(INCIDENT.id)


def test_where_the_run_still_went_on_the_title_says_what_the_alert_says():
    page = page_message(Config(), "r42", INCIDENT, {"cause": "none", "ranks": []})
    assert page.title == "r42: TrainingStepStalled – no step for 95 s"
    assert "accused" not in page.body
    assert "still went on" in page.body


def test_nobody_accused_is_said_as_such():
    page = page_message(Config(), "r42", INCIDENT, {"cause": "hang.fabric", "ranks": []})
    assert page.title.endswith("hang.fabric, nobody accused")


def test_what_cannot_be_told_says_why_in_its_title():
    verdict = {
        "cause": "unknown",
        "ranks": [],
        "not_observed": ["every rank was ended from outside (SIGTERM)"],
    }
    page = page_message(Config(), "r42", INCIDENT, verdict)
    assert page.title.endswith(" – cannot tell, because every rank was ended from outside (SIGTERM)")
    assert "accused" not in page.body


def test_a_host_that_is_the_culprit_stands_in_the_title():
    page = page_message(Config(), "r42", INCIDENT, {"cause": "hardware.nic", "ranks": [], "hosts": ["n2"]})
    assert page.title.endswith(" – culprit: host n2 (hardware.nic)")


def test_without_a_verdict_the_page_says_that_answers_are_still_being_taken():
    page = page_message(Config(respond=Respond(on_page=("diagnose",))), "r42", INCIDENT, None)
    assert page.title == "r42: TrainingStepStalled"
    assert "still being taken" in page.body


def test_where_no_answers_are_taken_the_page_says_how_to_take_them():
    page = page_message(Config(), "r42", INCIDENT, None, run_path="/runs/r 42")
    assert page.body.endswith("next: train-ledger respond '/runs/r 42'   (dumps, stacks and the verdict)")


def test_the_page_says_what_the_hooks_do():
    verdict = {"cause": "hardware.xid", "ranks": [5], "hosts": ["node037"]}
    page = page_message(Config(), "r42", INCIDENT, verdict, hooks=["exclude_command is run: because"])
    assert page.body.endswith("\nexclude_command is run: because")


def test_what_came_from_a_log_cannot_add_lines_or_move_a_cursor():
    verdict = {"cause": "hang.host", "ranks": [3], "evidence": ["a\nb\x1b[2J<b>"]}
    body = page_message(Config(), "r42", INCIDENT, verdict).body
    assert "a b<b>" in body
    assert "\x1b" not in body


@pytest.mark.parametrize("kind", ["open", "update", "repeat", "close"])
def test_every_message_tells_which_incident_it_belongs_to(kind):
    action = Action(kind, INCIDENT, 160.0, (STALLED,))
    assert incident_of(action.notification_id) == INCIDENT.id


def test_a_repeat_is_a_page_and_says_for_how_long_and_what_was_found():
    action = Action("repeat", INCIDENT, 100.0 + 4 * 3600, (STALLED,))
    message = repeat_message(Config(), "r42", action, {"cause": "hang.host", "ranks": [3]})
    assert (message.level, message.title) == ("page", "r42: still TrainingStepStalled")
    assert "open for 4.0 h" in message.body
    assert "culprit: rank 3" in message.body


def test_an_update_says_what_was_found_since_the_page():
    verdict = {"cause": "hang.host", "ranks": [3], "confidence": "high", "evidence": ["asleep"]}
    update = update_message(Config(), "r42", Action("update", INCIDENT, 160.0, (STALLED,)), verdict)
    assert update.title == "r42: also TrainingStepStalled – culprit: rank 3 (hang.host)"
    assert "- asleep" in update.body


def test_an_update_is_no_page_and_an_end_says_how_long_it_lasted():
    update = update_message(Config(), "r42", Action("update", INCIDENT, 160.0, (STALLED,)), None)
    assert (update.level, update.title) == ("record", "r42: also TrainingStepStalled")
    ended = resolved_message(Config(), "r42", Action("close", INCIDENT, 160.0))
    assert ended.level == "resolved"
    assert "over after 60 s" in ended.body


def test_the_end_of_an_incident_says_how_the_run_came_back():
    recovery = {"redone_steps": 50, "reached": 150, "loss_joins_on": False, "loss_difference": 0.2}
    recovery |= {"loss_tolerance": 0.02, "loss_compared": 50, "data_agrees": None}
    ended = resolved_message(Config(), "r42", Action("close", INCIDENT, 160.0), recovery)
    assert ended.body.splitlines()[1] == (
        "The run has recovered: past step 150 again, 50 steps done once more; the loss DOES NOT JOIN ON "
        "(differs by 0.2 over 50 steps, up to 0.02 is usual); whether the data agrees was not observed."
    )


@pytest.mark.parametrize(
    ("details", "step_s", "title"),
    [
        ({"slower": True, "before_s": 12.0}, 40.0, "r42: resolved, and still slow"),
        ({"slower": True, "before_s": 12.0}, 12.4, "r42: resolved"),
        ({"slower": True, "before_s": 12.0}, None, "r42: resolved"),
        ({"slower": True, "before_s": "twelve"}, 40.0, "r42: resolved"),
        (["no details"], 40.0, "r42: resolved"),
    ],
)
def test_an_end_because_slow_steps_became_usual_is_not_told_as_if_they_were_fast_again(
    details, step_s, title
):
    action = Action("close", INCIDENT, 3600.0)
    verdict = {"cause": "slow.communication", "details": details}
    ended = resolved_message(Config(), "r42", action, verdict=verdict, step_s=step_s)
    assert ended.title == title
    assert ("a step takes 40 s, before the incident it took 12 s" in ended.body) is ("slow" in title)
