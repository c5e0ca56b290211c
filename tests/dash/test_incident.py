"""One incident, one page; what joins is an update; what is over is said once."""

from __future__ import annotations

import json

from dash.states import T0
from train_ledger.config import Alerts
from train_ledger.dash.incident import Action, Incident, Incidents
from train_ledger.dash.judge import Alert, Transition
from train_ledger.dash.rule import Level


def fired(
    name: str, t: float, *, level: Level = "page", inhibited: bool = False, run: str = "r42"
) -> Transition:
    return Transition("fired", Alert(name, level, {"run": run}, t, f"{run}: {name}", 1.0, inhibited), t)


def resolved(transition: Transition, t: float) -> Transition:
    return Transition("resolved", transition.alert, t)


def kinds(actions: list[Action]) -> list[tuple[str, list[str]]]:
    return [(action.kind, [alert.name for alert in action.alerts]) for action in actions]


STALL = fired("TrainingStepStalled", 1_795_921_925.0)
GONE = fired("TrainingProcessGone", STALL.t + 30)


def test_the_first_page_opens_and_its_id_says_when_and_what() -> None:
    (opened,) = Incidents().apply([STALL], STALL.t)
    assert opened.incident.id == "20261129T031205Z-TrainingStepStalled"
    assert opened.notification_id == "20261129T031205Z-TrainingStepStalled-open"
    assert kinds([opened]) == [("open", ["TrainingStepStalled"])]


def test_pages_that_begin_together_are_one_message() -> None:
    both = [STALL, fired("TrainingProcessGone", STALL.t)]
    assert kinds(Incidents().apply(both, STALL.t)) == [
        ("open", ["TrainingStepStalled", "TrainingProcessGone"])
    ]


def test_a_page_that_joins_waits_for_the_group_interval() -> None:
    incidents = Incidents()
    incidents.apply([STALL], STALL.t)
    assert incidents.apply([GONE], GONE.t) == []
    assert incidents.apply([], STALL.t + 299) == []
    (update,) = incidents.apply([], STALL.t + 300)
    assert kinds([update]) == [("update", ["TrainingProcessGone"])]
    assert update.notification_id.endswith("-update-2")
    assert incidents.apply([], STALL.t + 900) == []


def test_a_page_that_is_still_open_is_told_again_only_after_the_repeat_interval() -> None:
    incidents = Incidents(Alerts(repeat_interval_s=3600.0))
    incidents.apply([STALL], STALL.t)
    told = [each for s in range(5, 7300, 5) for each in incidents.apply([], STALL.t + s)]
    assert [(each.kind, each.t - STALL.t) for each in told] == [("repeat", 3600), ("repeat", 7200)]
    assert [alert.name for alert in told[0].alerts] == ["TrainingStepStalled"]
    assert len({each.notification_id for each in told}) == 2, "an outbox takes each id once"


def test_an_update_counts_as_told_and_a_repeat_names_only_what_still_fires() -> None:
    incidents = Incidents(Alerts(repeat_interval_s=3600.0))
    incidents.apply([STALL], STALL.t)
    incidents.apply([GONE], GONE.t)
    incidents.apply([], STALL.t + 300)
    incidents.apply([resolved(STALL, STALL.t + 400)], STALL.t + 400)
    assert incidents.apply([], STALL.t + 3899) == []
    assert kinds(incidents.apply([], STALL.t + 3900)) == [("repeat", ["TrainingProcessGone"])]


def test_nothing_repeats_within_the_group_interval() -> None:
    incidents = Incidents(Alerts(repeat_interval_s=0.0))
    incidents.apply([STALL], STALL.t)
    assert incidents.apply([], STALL.t + 299) == []
    assert kinds(incidents.apply([], STALL.t + 300)) == [("repeat", ["TrainingStepStalled"])]


def test_pages_of_hosts_and_of_the_run_are_one_incident() -> None:
    labels = {"run": "r42", "rank": "5", "host": "n0", "gpu": "5", "xid": "79"}
    xid = Transition("fired", Alert("GpuXidError", "page", labels, STALL.t, "r42: XID 79", 1.0), STALL.t)
    (opened,) = Incidents().apply([xid, STALL], STALL.t)
    assert kinds([opened]) == [("open", ["GpuXidError", "TrainingStepStalled"])]


def test_it_closes_when_the_last_alert_is_resolved() -> None:
    incidents = Incidents()
    incidents.apply([STALL], STALL.t)
    incidents.apply([GONE], GONE.t)
    assert incidents.apply([resolved(STALL, T0)], GONE.t + 10) == []
    (closed,) = incidents.apply([resolved(GONE, T0)], GONE.t + 20)
    assert kinds([closed]) == [("close", ["TrainingProcessGone"])]
    assert incidents.open == ()
    assert kinds(incidents.apply([fired("TrainingStepStalled", GONE.t + 100)], GONE.t + 100))[0][0] == "open"


def test_an_alert_that_comes_back_within_its_incident_is_not_told_again() -> None:
    incidents = Incidents()
    incidents.apply([STALL, GONE], GONE.t)
    incidents.apply([resolved(STALL, GONE.t + 5)], GONE.t + 5)
    incidents.apply([fired("TrainingStepStalled", GONE.t + 10)], GONE.t + 10)
    assert incidents.apply([resolved(GONE, GONE.t + 20)], GONE.t + 400) == []
    assert len(incidents.open) == 1


def test_what_comes_back_after_it_was_over_for_a_group_interval_is_told_as_an_update_of_its_own() -> None:
    """An incident may be open for days, by memory that waits for a reset: nobody would hear of the second."""
    incidents = Incidents()
    nan = fired("TrainingLossNotFinite", T0 + 600)
    sent = [incidents.apply([fired("GpuEccDbe", T0)], T0), incidents.apply([nan], T0 + 600)]
    sent.append(incidents.apply([resolved(nan, T0 + 1500)], T0 + 1500))
    sent.append(incidents.apply([fired("TrainingLossNotFinite", T0 + 9000)], T0 + 9000))
    told = [action for actions in sent for action in actions]
    assert kinds(told[1:]) == [("update", ["TrainingLossNotFinite"])] * 2
    assert len({action.notification_id for action in told}) == 3
    assert Incident.from_json(json.loads(json.dumps(told[-1].incident.to_json()))) == told[-1].incident


def test_records_and_inhibited_alerts_open_nothing() -> None:
    quiet = [
        fired("TrainingRestarting", T0, level="record"),
        fired("TrainingStepStalled", T0, inhibited=True),
    ]
    assert Incidents().apply(quiet, T0) == []


def test_two_runs_are_two_incidents() -> None:
    actions = Incidents().apply([STALL, fired("TrainingStepStalled", STALL.t, run="r43")], STALL.t)
    assert [action.incident.run for action in actions] == ["r42", "r43"]


def test_from_the_journal_the_same_incidents_are_made_whenever_the_keeper_was_killed() -> None:
    story = [
        ([STALL], STALL.t),
        ([GONE], GONE.t),
        ([], STALL.t + 310),
        ([], STALL.t + 20_000),
        ([resolved(STALL, STALL.t + 20_320)], STALL.t + 20_320),
        ([resolved(GONE, STALL.t + 20_330)], STALL.t + 20_330),
    ]
    told_in_one_life = [action.notification_id for action in _lives(story, killed_after=None)]
    for killed_after in range(len(story)):
        assert [action.notification_id for action in _lives(story, killed_after)] == told_in_one_life


def _lives(story: list[tuple[list[Transition], float]], killed_after: int | None) -> list[Action]:
    incidents, journal, actions = Incidents(), list[str](), list[Action]()
    for number, (transitions, t) in enumerate(story):
        journal += [json.dumps({"transition": each.to_json()}) for each in transitions]
        done = incidents.apply(transitions, t)
        actions += done
        journal += [json.dumps({"incident": action.incident.to_json()}) for action in done]
        if number == killed_after:
            incidents = Incidents()
            for line in journal:
                entry = json.loads(line)
                if "transition" in entry:
                    incidents.replay(Transition.from_json(entry["transition"]))
                else:
                    incidents.replay(Incident.from_json(entry["incident"]))
    return actions


def test_a_keeper_killed_before_it_told_anybody_decides_the_same_message_again() -> None:
    (lost,) = Incidents().apply([STALL], STALL.t)
    reborn = Incidents()
    reborn.replay(STALL)
    (again,) = reborn.apply([], STALL.t + 60)
    assert again.notification_id == lost.notification_id
