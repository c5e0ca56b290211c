"""The embedded checks of a run's hours, its data, its saves and its hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dash.states import T0, running, with_rank
from train_ledger.config import Alerts, Config
from train_ledger.dash.judge import Judge
from train_ledger.dash.rule import Firing, Rule
from train_ledger.dash.rules import RULES
from train_ledger.dash.telemetry_conditions import lost_hosts
from train_ledger.facts import Event, Step
from train_ledger.ledger import Fold
from train_ledger.ledger.state import (
    Checkpoints,
    DataRegress,
    GpuState,
    Productive,
    RankState,
    RunState,
)

ALERTS = Alerts()
HOUR_S = 3600.0
BY_NAME = {rule.name: rule for rule in RULES}


def firing(name: str, state: RunState) -> list[Firing]:
    return list(BY_NAME[name].check(state, ALERTS))


@pytest.mark.parametrize("rule", [it for it in RULES if it.level == "page"], ids=lambda rule: rule.name)
def test_every_page_of_a_run_says_where_the_run_stands(rule: Rule) -> None:
    assert "run:train_step:last" in rule.summary


# -- hours


def low(hours: float, fraction: float, **others: Any) -> list[Firing]:
    state = running(t=T0 + hours * HOUR_S, productive=Productive(T0, 1.0, fraction), **others)
    return firing("EffectiveTrainingTimeLow", state)


def test_a_run_is_judged_by_its_hours_when_it_is_old_enough() -> None:
    assert low(5.9, 0.1) == []
    (found,) = low(6.1, 0.84)
    assert found.labels == {"run": "r42"}
    assert found.summary == (
        "r42: 84% of the last 24 h went into steps that brought the run further, step 100, attempt 0"
    )
    assert low(6.1, 0.85) == []
    assert low(30, 0.2, finished=True) == []
    assert firing("EffectiveTrainingTimeLow", running(t=T0 + 30 * HOUR_S)) == []


def test_what_a_launcher_says_of_the_hours_does_not_silence_a_dead_run() -> None:
    state = running(t=T0 + 30 * HOUR_S, productive=Productive(T0, 1.0, 0.1))
    assert firing("EffectiveTrainingTimeLow", with_rank(state, 0, values={"effective_fraction": 0.99}))


def test_a_run_that_died_is_told_hours_later_by_the_fold_alone() -> None:
    fold = Fold("r42", Config())
    fold.add(Event(T0, "run_start", 0, host="n1", details={"world_size": 1}))
    fold.add_all(Step(T0 + 30.0 * step, step, 0, host="n1") for step in range(1, 2401))  # 20 h
    died_t = T0 + 30 * 2400
    told = {
        hours: firing("EffectiveTrainingTimeLow", fold.state(died_t + hours * HOUR_S)) for hours in (0, 3, 4)
    }
    assert [bool(it) for it in told.values()] == [False, False, True]


# -- data


def test_other_data_after_a_restart_are_told_for_an_hour() -> None:
    regress = DataRegress(attempt=1, step=61, t=T0 + 1000, position=512, was=31_232)
    state = running(t=T0 + 1010, attempt=1, data_regress_total=1, data_regresses=(regress,))
    (found,) = firing("DataPositionRegressed", state)
    assert found.summary == (
        "r42: attempt 1 went on at other data: 512 at step 61, was 31232, step 100, attempt 1"
    )
    assert firing("DataPositionRegressed", replace(state, t=T0 + 4700)) == []
    assert firing("DataPositionRegressed", replace(state, finished=True)) == []


# -- saves


@pytest.mark.parametrize(
    ("durations", "fires"),
    [
        ((40.0, 42.0, 41.0, 65.0), True),
        ((40.0, 42.0, 41.0, 60.0), False),
        ((40.0, 42.0, 41.0, 65.0, 41.0), False),
        ((10.0, 10.0, 10.0, 29.0), False),
        ((40.0, 42.0, 80.0), False),
        ((0.0, 0.0, 0.0, 80.0), False),
    ],
    ids=["slower", "a little slower", "well again", "too short to matter", "no usual yet", "no usual at all"],
)
def test_a_save_slower_than_usual_is_put_on_record(durations: tuple[float, ...], fires: bool) -> None:
    state = running(t=T0 + 500, checkpoints=Checkpoints(durations_s=durations))
    assert bool(firing("CheckpointSlow", state)) is fires


# -- restarts


def test_a_loop_of_starts_that_write_nothing_else_is_found() -> None:
    fold = Fold("r42", Config())
    for attempt in range(4):
        fold.add(
            Event(T0 + 300.0 * attempt, "run_start", 0, attempt=attempt, host="n1", details={"world_size": 1})
        )
    state = fold.state(T0 + 910)
    assert len(firing("TrainingRestartLoop", state)) == 1
    assert len(firing("TrainingRestarting", state)) == 1


# -- hosts


def two_hosts(*, t: float, silent_t: float, **others: Any) -> RunState:
    """Ranks 2 and 3 are on another host, and were heard last at `silent_t`."""
    state = running(t=t, **others)
    for rank in (2, 3):
        state = with_rank(state, rank, host="node2", step_t=silent_t, heard_t=silent_t)
    return state


def test_a_host_from_which_nothing_comes_while_others_go_on() -> None:
    state = two_hosts(t=T0 + 1000, silent_t=T0 + 690)
    (found,) = firing("TrainingTelemetryLost", state)
    assert found.labels == {"run": "r42", "host": "node2"}
    assert found.value == 310
    assert "nothing comes from host node2 (2 ranks) since " in found.summary
    assert firing("TrainingProcessGone", state) == [], "a host that is silent as a whole is no process"
    assert firing("TrainingTelemetryLost", two_hosts(t=T0 + 1000, silent_t=T0 + 710)) == []
    assert firing("TrainingTelemetryLost", replace(state, by_logs=True)) == []
    assert firing("TrainingTelemetryLost", replace(state, finished=True)) == []


def test_a_host_whose_hardware_still_answers_is_not_lost() -> None:
    state = two_hosts(t=T0 + 1000, silent_t=T0 + 100)
    assert lost_hosts(replace(state, gpus=(GpuState("node2", 0, seen_t=T0 + 990),)), ALERTS) == {}
    stale = replace(state, gpus=(GpuState("node2", 0, seen_t=T0 + 650),))
    assert lost_hosts(stale, ALERTS) == {"node2": T0 + 650}


def test_where_all_stand_a_host_is_lost_whose_hardware_alone_fell_silent() -> None:
    state = two_hosts(t=T0 + 1000, silent_t=T0 + 600, last_step_t=T0 + 600)
    assert lost_hosts(state, ALERTS) == {}
    looks = (GpuState("node1", 0, seen_t=T0 + 995), GpuState("node2", 0, seen_t=T0 + 605))
    assert lost_hosts(replace(state, gpus=looks), ALERTS) == {"node2": T0 + 605}
    nobody_else_looks = replace(state, gpus=(GpuState("node1", 0, seen_t=T0 + 995),))
    assert lost_hosts(nobody_else_looks, ALERTS) == {}


@pytest.mark.parametrize("phase", ["checkpoint_save", "evaluation", "compile"])
def test_a_host_in_a_long_phase_alone_is_not_lost(phase: str) -> None:
    state = two_hosts(t=T0 + 1000, silent_t=T0 + 500)
    assert lost_hosts(state, ALERTS) != {}
    assert lost_hosts(with_rank(state, 3, phase=phase), ALERTS) == {}


def test_a_host_that_has_not_completed_a_step_is_still_starting() -> None:
    state = two_hosts(t=T0 + 1000, silent_t=T0 + 500)
    assert lost_hosts(with_rank(state, 2, step=None, step_t=None), ALERTS) == {}


def test_a_host_that_the_run_has_left_or_that_has_ended_is_not_lost() -> None:
    state = two_hosts(t=T0 + 1000, silent_t=T0 + 500)
    ended = with_rank(with_rank(state, 2, ended=True), 3, ended=True)
    assert lost_hosts(ended, ALERTS) == {}
    gone = with_rank(with_rank(state, 2, gone_t=T0 + 500), 3, gone_t=T0 + 500)
    assert lost_hosts(gone, ALERTS) == {}, "that is known, and TrainingProcessGone says it"
    left: dict[int, RankState] = {rank: it for rank, it in state.ranks.items() if it.host != "node2"}
    assert lost_hosts(replace(state, ranks=left), ALERTS) == {}


def test_a_run_that_cannot_be_read_is_an_alarm() -> None:
    state = running(t=T0 + 1000, last_step_t=T0 + 690, unreadable="signals: Stale file handle")
    state = replace(state, unreadable_since_t=T0 + 695)
    (found,) = firing("TrainingTelemetryLost", state)
    assert found.labels == {"run": "r42"}
    assert "the run cannot be read since " in found.summary
    assert "signals: Stale file handle" in found.summary
    assert firing("TrainingTelemetryLost", replace(state, unreadable_since_t=T0 + 710)) == []
    assert firing("TrainingTelemetryLost", replace(state, last_step_t=T0 + 500)) == [], "it stood before"
    assert firing("TrainingTelemetryLost", replace(state, finished=True)) == []


def test_a_host_that_is_lost_is_one_alert_that_is_kept_while_it_comes_and_goes() -> None:
    judge = Judge(config=Config())
    lost = two_hosts(t=T0 + 1000, silent_t=T0 + 690)
    assert [it.alert.name for it in judge.evaluate(lost)] == ["TrainingTelemetryLost"]
    back = two_hosts(t=T0 + 1005, silent_t=T0 + 1004)
    assert judge.evaluate(back) == []
    later = two_hosts(t=T0 + 1310, silent_t=T0 + 1309)
    assert [it.kind for it in judge.evaluate(later)] == ["resolved"]
