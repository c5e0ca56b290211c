"""What became of each alert."""

from __future__ import annotations

from dataclasses import replace

from train_ledger.config import Alerts
from train_ledger.dash.backtest.history import AlertHistory, PastAlert
from train_ledger.dash.judge import Alert, Transition

T0 = 1_764_000_000.0
STALL = Alert("TrainingStepStalled", "page", {"run": "r42"}, T0, "r42: stands", 1.0)
SPIKE = Alert("GradNormSpike", "record", {"run": "r42"}, T0, "r42: a spike", 1.0)
GONE = Alert("TrainingProcessGone", "page", {"run": "r42"}, T0, "r42: gone", 1.0)


def history(*moments: tuple[float, list[tuple[str, Alert]]]) -> tuple[PastAlert, ...]:
    kept = AlertHistory(Alerts(group_interval_s=300.0))
    for after_s, found in moments:
        t = T0 + after_s
        kept.take([Transition("fired" if what == "fired" else "resolved", it, t) for what, it in found], t)
    return kept.alerts


def test_a_page_is_told_at_once_and_a_record_never() -> None:
    stall, spike = history((0, [("fired", STALL), ("fired", SPIKE)]), (60, [("resolved", STALL)]))
    assert (stall.fired_t, stall.notified_t, stall.resolved_t) == (T0, T0, T0 + 60)
    assert (spike.notified_t, spike.resolved_t) == (None, None)


def test_the_first_message_waits_and_names_what_joins_it_until_then() -> None:
    kept = AlertHistory(Alerts(group_interval_s=300.0), waits_s=10.0)
    for after_s, found in ((0.0, [STALL]), (5.0, [GONE]), (400.0, [])):
        kept.take([Transition("fired", it, T0 + after_s) for it in found], T0 + after_s)
    assert [it.notified_t for it in kept.alerts] == [T0 + 10, T0 + 10]
    assert [it.known_t for it in kept.alerts] == [T0 + 10, T0 + 10]


def test_what_joins_is_told_at_the_next_group_interval() -> None:
    quiet: list[tuple[float, list[tuple[str, Alert]]]] = [(at_s, []) for at_s in range(60, 400, 60)]
    _, gone = history((0, [("fired", STALL)]), (30, [("fired", GONE)]), *quiet)
    assert gone.notified_t == T0 + 300


def test_what_was_inhibited_is_told_when_the_inhibition_ends_if_at_all() -> None:
    held = replace(STALL, inhibited=True)
    (silent,) = history((0, [("fired", held)]), (60, [("resolved", held)]))
    assert (silent.inhibited, silent.notified_t) == (True, None)
    (told,) = history((0, [("fired", held)]), (60, [("fired", STALL)]))
    assert (told.inhibited, told.fired_t, told.notified_t) == (True, T0, T0 + 60)


def test_what_comes_back_in_an_open_incident_is_not_told_again_but_known() -> None:
    first, _, again = history(
        (0, [("fired", STALL)]),
        (10, [("fired", GONE)]),
        (60, [("resolved", STALL)]),
        (120, [("fired", STALL)]),
    )
    assert first.notified_t == T0
    assert (again.fired_t, again.notified_t, again.known_t) == (T0 + 120, None, T0 + 120)


def test_what_comes_back_an_hour_later_in_an_open_incident_is_told() -> None:
    first, _, again = history(
        (0, [("fired", GONE)]),
        (400, [("fired", STALL)]),
        (800, [("resolved", STALL)]),
        (4400, [("fired", STALL)]),
    )
    assert first.notified_t == T0
    assert (again.fired_t, again.notified_t, again.known_t) == (T0 + 4400, T0 + 4400, T0 + 4400)


def test_what_joined_and_was_over_before_the_next_message_is_told_in_it() -> None:
    quiet: list[tuple[float, list[tuple[str, Alert]]]] = [(at_s, []) for at_s in range(60, 400, 60)]
    _, gone = history((0, [("fired", STALL)]), (30, [("fired", GONE)]), (45, [("resolved", GONE)]), *quiet)
    assert (gone.resolved_t, gone.notified_t) == (T0 + 45, T0 + 300)


def test_what_is_told_again_was_told_when_it_was_first() -> None:
    quiet: list[tuple[float, list[tuple[str, Alert]]]] = [(hour * 3600, []) for hour in range(1, 10)]
    (stall,) = history((0, [("fired", STALL)]), *quiet)
    assert stall.notified_t == T0
