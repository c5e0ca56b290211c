"""What was known is judged in the run's own time."""

from __future__ import annotations

from train_ledger.config import Alerts, Config, Respond
from train_ledger.dash.backtest import Known, Replay, evaluations
from train_ledger.facts import Event, Step
from train_ledger.ledger import RunState

T0 = 1_764_000_000.0
CONFIG = Config(alerts=Alerts(stall_floor_s=60.0), respond=Respond(on_page=("diagnose",)))


def of_two_ranks(steps: int, *, every_s: float = 1.0) -> list[Known]:
    """Two ranks that begin together, complete so many steps and say nothing more."""
    said = [Known(T0, Event(T0, "run_start", rank, host="node1")) for rank in (0, 1)]
    for number in range(1, steps + 1):
        t = T0 + number * every_s
        values = {"loss": 2.0, "step_time_s": every_s}
        said += [Known(t, Step(t, number, rank, host="node1", values=values)) for rank in (0, 1)]
    return said


def test_a_run_that_falls_silent_is_paged_when_its_limit_has_passed() -> None:
    replay = Replay("r42", CONFIG)
    transitions = list(replay.play(of_two_ranks(100), T0 + 300))
    assert [(it.kind, it.alert.name, it.t) for it in transitions] == [
        ("fired", "TrainingStepStalled", T0 + 165)
    ]
    (stall,) = replay.alerts
    assert (stall.fired_t, stall.notified_t, stall.resolved_t) == (T0 + 165, T0 + 175, None)
    assert stall.labels == {"run": "r42"}


def test_where_no_first_answers_are_taken_the_page_waits_for_none() -> None:
    replay = Replay("r42", Config(alerts=CONFIG.alerts))
    list(replay.play(of_two_ranks(100), T0 + 300))
    (stall,) = replay.alerts
    assert stall.notified_t == stall.fired_t


def test_what_was_written_later_is_not_known_yet() -> None:
    seen: list[RunState] = []
    replay = Replay("r42", CONFIG, witness=seen.append)
    list(replay.play(of_two_ranks(100), T0 + 50))
    assert [(state.t - T0, state.step) for state in seen[:3]] == [(0, None), (5, 5), (10, 10)]
    assert seen[-1].step == 50


def test_it_may_be_judged_from_a_later_moment_on_with_all_that_was_known_before() -> None:
    seen: list[RunState] = []
    replay = Replay("r42", CONFIG, witness=seen.append)
    list(replay.play(of_two_ranks(100), T0 + 100, since_t=T0 + 81))
    assert [(state.t - T0, state.step) for state in seen] == [(85, 85), (90, 90), (95, 95), (100, 100)]


def test_evaluations_are_multiples_of_the_interval_from_the_beginning_to_the_end() -> None:
    assert list(evaluations(T0, T0 + 10, 5.0)) == [T0, T0 + 5, T0 + 10]
    assert list(evaluations(T0 + 1, T0 + 10, 5.0)) == [T0 + 5, T0 + 10]
    assert list(evaluations(T0 + 11, T0 + 10, 5.0)) == []


def test_of_nothing_nothing_is_judged() -> None:
    assert list(Replay("r42", CONFIG).play([], T0)) == []
