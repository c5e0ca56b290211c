import pytest

from train_ledger.config import Alerts
from train_ledger.dash import Alert, Incidents, Transition
from train_ledger.watch.recall import recall

ALERT = Alert("TrainingStepStalled", "page", {"run": "r42"}, 100.0, "no step", 95.0)


def entry(kind, **details):
    return {"t": 100.0, "kind": kind, **details}


def fired(kind="fired"):
    return entry(f"alert_{kind}", transition=Transition(kind, ALERT, 100.0).to_json())


def test_an_empty_journal_recalls_nothing():
    before = recall([], Alerts())
    assert (before.open_alerts, before.answered, before.intended, before.state) == ((), {}, set(), None)


def test_an_alert_that_fired_is_open_until_it_is_resolved():
    assert recall([fired()], Alerts()).open_alerts == (ALERT,)
    assert recall([fired(), fired("resolved")], Alerts()).open_alerts == ()


def test_an_alert_without_its_incident_s_entry_still_opens_one():
    before = recall([fired()], Alerts())
    (action,) = before.incidents.apply([], 101.0)
    assert action.kind == "open"


def test_what_was_sent_and_found_is_not_done_again():
    entries = [
        entry("verdict", incident="i1", place=[0, 19], diagnosis={"cause": "hang.host"}),
        entry("verdict", incident="i1", place=[1, 34], diagnosis={"cause": "hang.host"}),
        entry("notification_intended", incident="i1", notification="i1-open"),
        entry("notification_done", incident="i1", notification="i1-open", outcome="delivered"),
        entry("state_changed", state="stalled"),
    ]
    before = recall(entries, Alerts())
    assert before.answered == {"i1": {(0, 19), (1, 34)}}
    assert (before.intended, before.done) == ({"i1-open"}, {"i1-open"})
    assert before.state == "stalled"
    assert before.verdict["incident"] == "i1"


def test_records_wait_for_a_digest_and_are_told_once():
    record = Alert("GpuClockLow", "record", {"run": "r42"}, 100.0, "slow", 0.7)
    low = entry("alert_fired", transition=Transition("fired", record, 100.0).to_json())
    assert recall([low, fired()], Alerts()).digest.is_due(200.0, 100.0)
    told = entry("notification_intended", incident=None, notification="digest-20261130T000000Z")
    assert not recall([low, told], Alerts()).digest.is_due(200.0, 100.0)
    assert recall([low, told, low], Alerts()).digest.is_due(200.0, 100.0)


def test_an_entry_that_cannot_be_understood_is_counted_and_the_others_hold():
    before = recall([entry("alert_fired", transition={"kind": "fired"}), fired()], Alerts())
    assert before.unknown == 1
    assert before.open_alerts == (ALERT,)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("alert", "name"), ["x"]),
        (("alert", "summary"), 7),
        (("alert", "labels"), {"run": {}}),
        (("alert", "fired_t"), 10**400),
        (("alert", "value"), "much"),
        (("t",), 1e300),
        (("t",), True),
    ],
)
def test_a_transition_that_no_judge_wrote_is_counted_and_opens_nothing(path, value):
    odd = Transition("fired", ALERT, 100.0).to_json()
    (odd["alert"] if len(path) == 2 else odd)[path[-1]] = value
    before = recall([entry("alert_fired", transition=odd)], Alerts())
    assert (before.unknown, before.open_alerts, before.incidents.open) == (1, (), ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", None),
        ("run", []),
        ("opened_t", "noon"),
        ("told_t", -(10**400)),
        ("repeats", "x"),
        ("members", 5),
    ],
)
def test_an_incident_that_no_keeper_wrote_is_counted_and_the_run_is_judged_all_the_same(name, value):
    (opened,) = Incidents(Alerts()).apply([Transition("fired", ALERT, 100.0)], 100.0)
    odd = entry("incident_opened", incident="i1", record={**opened.incident.to_json(), name: value})
    before = recall([odd], Alerts())
    assert (before.unknown, before.incidents.apply([], 1e9)) == (1, [])


@pytest.mark.parametrize("place", [[0, [None]], [0, {}], ["x", 1], [1], 7, "ab"])
def test_a_verdict_at_no_place_is_one_on_a_run_that_goes_on(place):
    before = recall([entry("verdict", incident="i1", place=place)], Alerts())
    assert before.answered == {"i1": {None}}
