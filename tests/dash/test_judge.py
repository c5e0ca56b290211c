"""The judge fires once, waits, keeps, inhibits and resolves as Prometheus and Alertmanager would."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dash.states import T0, running, with_rank
from train_ledger.config import Alerts, Config
from train_ledger.dash.judge import Alert, Judge, Transition
from train_ledger.dash.rule import Firing, Inhibition, Rule
from train_ledger.ledger.state import RunState

STALLED = running(t=T0 + 100, last_step_t=T0 + 5)


def told(transitions: list[Transition]) -> list[tuple[str, str]]:
    return [(each.kind, each.alert.name) for each in transitions if not each.alert.inhibited]


def test_a_stall_fires_once_and_resolves_once_after_keep_firing() -> None:
    judge = Judge()
    assert told(judge.evaluate(STALLED)) == [("fired", "TrainingStepStalled")]
    assert told(judge.evaluate(replace(STALLED, t=T0 + 105))) == []
    assert "100 s" in judge.open_alerts[0].summary, "the summary goes with the time"
    assert judge.open_alerts[0].fired_t == T0 + 100
    assert told(judge.evaluate(running(t=T0 + 110))) == []
    assert told(judge.evaluate(running(t=T0 + 409))) == []
    assert told(judge.evaluate(running(t=T0 + 410))) == [("resolved", "TrainingStepStalled")]
    assert judge.open_alerts == ()


def test_a_stall_that_comes_back_while_it_is_kept_is_the_same_alert() -> None:
    judge = Judge()
    judge.evaluate(STALLED)
    judge.evaluate(running(t=T0 + 110))
    assert told(judge.evaluate(running(t=T0 + 300, last_step_t=T0 + 150))) == []
    assert told(judge.evaluate(running(t=T0 + 500))) == [], "the count of keep_firing_for starts anew"
    assert told(judge.evaluate(running(t=T0 + 800))) == [("resolved", "TrainingStepStalled")]


def test_a_process_must_be_gone_for_two_minutes_by_its_own_time() -> None:
    judge = Judge()
    gone = with_rank(running(t=T0 + 500, stall_threshold_s=600.0), 1, gone_t=T0 + 490)
    assert told(judge.evaluate(gone)) == []
    assert told(judge.evaluate(replace(gone, t=T0 + 609))) == []
    assert ("fired", "TrainingProcessGone") in told(judge.evaluate(replace(gone, t=T0 + 610)))
    just_started = Judge()
    assert ("fired", "TrainingProcessGone") in told(just_started.evaluate(replace(gone, t=T0 + 611)))


def test_a_restarted_judge_does_not_fire_again_what_was_open() -> None:
    first = Judge()
    first.evaluate(STALLED)
    journal = json.dumps([alert.to_json() for alert in first.open_alerts])
    second = Judge()
    second.restore(Alert.from_json(entry) for entry in json.loads(journal))
    assert second.evaluate(replace(STALLED, t=T0 + 200)) == []
    assert told(second.evaluate(running(t=T0 + 210))) == []
    assert told(second.evaluate(running(t=T0 + 510))) == [("resolved", "TrainingStepStalled")]


def test_a_restored_alert_that_is_over_is_resolved_after_keep_firing() -> None:
    judge = Judge()
    judge.restore([Alert("TrainingStepStalled", "page", {"run": "r42"}, T0, "r42: …", 95.0)])
    assert judge.evaluate(running(t=T0 + 1000)) == []
    assert told(judge.evaluate(running(t=T0 + 1300))) == [("resolved", "TrainingStepStalled")]


def test_a_restored_alert_whose_rule_is_gone_is_resolved_at_once() -> None:
    judge = Judge()
    judge.restore([Alert("OfAnOlderVersion", "page", {"run": "r42"}, T0, "r42: …", 1.0)])
    assert told(judge.evaluate(running(t=T0 + 1000))) == [("resolved", "OfAnOlderVersion")]


RESTARTING = running(t=T0 + 500, last_step_t=T0 + 300, state="restarting", since_t=T0 + 490, attempt=1)


def test_a_restart_inhibits_the_stall_and_when_it_takes_too_long_the_stall_is_told() -> None:
    judge = Judge()
    fired = judge.evaluate(RESTARTING)
    assert {(each.alert.name, each.alert.inhibited) for each in fired} == {
        ("TrainingStepStalled", True),
        ("TrainingRestarting", False),
    }
    assert told(judge.evaluate(replace(RESTARTING, t=T0 + 2289))) == []
    late = judge.evaluate(replace(RESTARTING, t=T0 + 2290))
    assert told(late) == [("fired", "TrainingStepStalled"), ("resolved", "TrainingRestarting")]
    assert late[0].alert.fired_t == T0 + 500


def test_a_stall_that_ended_with_the_restart_is_never_told() -> None:
    judge = Judge()
    judge.evaluate(RESTARTING)
    heard = [judge.evaluate(running(t=T0 + 510 + n)) for n in range(0, 400, 5)]
    assert [each for batch in heard for each in told(batch)] == [("resolved", "TrainingRestarting")]
    assert judge.open_alerts == ()


def test_an_alert_that_was_told_is_not_taken_back_by_a_later_restart() -> None:
    judge = Judge()
    judge.evaluate(running(t=T0 + 400, last_step_t=T0 + 300))
    judge.evaluate(RESTARTING)
    stall = next(alert for alert in judge.open_alerts if alert.name == "TrainingStepStalled")
    assert not stall.inhibited


def _always(name: str, labels: dict[str, str]) -> Rule:
    def check(state: RunState, alerts: Alerts) -> list[Firing]:
        return [Firing(labels, 1.0, name)]

    return Rule(name, "page", "vector(1)", name, name.lower(), check)


def test_alerts_that_both_lack_a_label_do_not_inhibit_each_other() -> None:
    rules = (_always("GpuXidError", {"run": "r42"}), _always("GpuClockLow", {"run": "r42"}))
    by_host = (Inhibition(frozenset({"GpuXidError"}), frozenset({"GpuClockLow"}), equal=("run", "host")),)
    fired = Judge(rules, inhibitions=by_host).evaluate(running(t=T0))
    assert [each.alert.inhibited for each in fired] == [False, False]


def test_a_label_without_a_value_counts_as_none() -> None:
    labels = {"run": "r42", "host": ""}
    rules = (_always("GpuXidError", labels), _always("GpuClockLow", labels))
    assert [each.alert.inhibited for each in Judge(rules).evaluate(running(t=T0))] == [False, False]


def _while(name: str, labels: dict[str, str], until_t: float) -> Rule:
    def check(state: RunState, alerts: Alerts) -> list[Firing]:
        return [Firing(labels, 1.0, name)] if state.t < until_t else []

    return Rule(name, "page", "vector(1)", name, name.lower(), check)


def test_a_fault_inhibits_the_stall_of_its_run_and_releases_what_still_holds() -> None:
    fault = {"run": "r42", "rank": "5", "host": "n0", "gpu": "5", "xid": "79"}
    for source in ("GpuXidError", "GpuEccDbe", "GpuLost"):
        judge = Judge((_while(source, fault, T0 + 100), _always("TrainingStepStalled", {"run": "r42"})))
        assert told(judge.evaluate(running(t=T0))) == [("fired", source)]
        assert told(judge.evaluate(running(t=T0 + 99))) == []
        assert told(judge.evaluate(running(t=T0 + 100))) == [
            ("fired", "TrainingStepStalled"),
            ("resolved", source),
        ]


def test_a_fault_silences_low_clocks_on_its_own_host_alone() -> None:
    rules = (
        _always("GpuXidError", {"run": "r42", "host": "n0", "gpu": "5"}),
        _always("GpuClockLow", {"run": "r42", "host": "n0", "gpu": "1"}),
        _always("GpuClockLowRepeated", {"run": "r42", "host": "n0", "gpu": "1"}),
    )
    elsewhere = _always("GpuClockLow", {"run": "r42", "host": "n1", "gpu": "1"})
    assert told(Judge((*rules, elsewhere)).evaluate(running(t=T0))) == [
        ("fired", "GpuXidError"),
        ("fired", "GpuClockLowRepeated"),
        ("fired", "GpuClockLow"),
    ]


def test_another_run_does_not_inhibit() -> None:
    rules = (_always("TrainingRestarting", {"run": "r1"}), _always("TrainingStepStalled", {"run": "r2"}))
    assert [each.alert.inhibited for each in Judge(rules).evaluate(running(t=T0))] == [False, False]


def test_thresholds_come_from_the_configuration() -> None:
    judge = Judge(config=Config(alerts=Alerts(keep_firing_s=10.0)))
    judge.evaluate(STALLED)
    judge.evaluate(running(t=T0 + 110))
    assert told(judge.evaluate(running(t=T0 + 120))) == [("resolved", "TrainingStepStalled")]


_STATES = st.lists(st.sampled_from(["steps", "stands", "restarts", "gone"]), max_size=60)


@given(_STATES, st.integers(min_value=0, max_value=59))
def test_fired_and_resolved_alternate_even_if_the_judge_is_restarted_at_any_moment(
    story: list[str], killed_at: int
) -> None:
    judge, open_now, last_step_t = Judge(), set[str](), T0
    for number, what in enumerate(story):
        t = T0 + 60.0 * number
        last_step_t = t if what == "steps" else last_step_t
        state = running(t=t, last_step_t=last_step_t)
        if what == "restarts":
            state = replace(state, state="restarting", since_t=t)
        if what == "gone":
            state = with_rank(state, 2, gone_t=t)
        if number == killed_at:
            reborn = Judge()
            reborn.restore(judge.open_alerts)
            judge = reborn
        for kind, name in told(judge.evaluate(state)):
            assert (name in open_now) is (kind == "resolved")
            open_now ^= {name}
