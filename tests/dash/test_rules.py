"""Each rule says what it should, and is quiet where it should be."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dash.states import T0, running, with_rank
from train_ledger.config import Alerts
from train_ledger.dash.rule import Firing, Rule
from train_ledger.dash.rules import INHIBITIONS, RULES
from train_ledger.ledger.state import Attempt, Checkpoints, FailedSave, RunState

ALERTS = Alerts()
BY_NAME = {rule.name: rule for rule in RULES}


def firing(name: str, state: RunState, alerts: Alerts = ALERTS) -> Firing | None:
    found = BY_NAME[name].check(state, alerts)
    assert len(found) <= 1, "what is true of the run is one alert of the run"
    return found[0] if found else None


def test_a_healthy_run_fires_nothing() -> None:
    assert [rule.name for rule in RULES if rule.check(running(t=T0 + 500), ALERTS)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_has_all_that_a_page_needs(rule: Rule) -> None:
    assert rule.level in ("page", "record")
    assert rule.summary.startswith("{{ $labels.run }}")
    assert re.fullmatch(r"[a-z]+", rule.runbook)
    assert rule.level == "record" or rule.keep_s(ALERTS) > 0


def test_a_stall_is_judged_by_the_limit_that_the_state_gives() -> None:
    state = running(t=T0 + 1000, last_step_t=T0 + 910)
    assert firing("TrainingStepStalled", state) is None, "the limit itself is still allowed"
    stalled = firing("TrainingStepStalled", replace(state, t=T0 + 1001))
    assert stalled is not None
    assert stalled.value == 91
    assert stalled.labels == {"run": "r42"}
    assert stalled.summary == "r42: no step completed for 91 s (limit 90 s), step 100, attempt 0"
    in_checkpoint = replace(state, t=T0 + 1001, stall_threshold_s=600.0, phase="checkpoint_save")
    assert firing("TrainingStepStalled", in_checkpoint) is None


def test_a_run_that_never_completed_a_step_stalls_too() -> None:
    state = RunState("r42", t=T0 + 1801, attempts=(Attempt(0, T0),), stall_threshold_s=1800.0)
    stalled = firing("TrainingStepStalled", state)
    assert stalled is not None
    where = "before the first step, attempt 0"
    assert stalled.summary == f"r42: no first step 1801 s after its attempt began (limit 1800 s), {where}"


def test_a_finished_run_is_quiet_whatever_happened_to_it() -> None:
    state = running(t=T0 + 9000, last_step_t=T0 + 10, finished=True, state="finished")
    state = with_rank(state, 1, gone_t=T0 + 20, nonfinite_t=T0 + 10, nonfinite_step=100, nonfinite_total=1)
    state = replace(state, checkpoints=Checkpoints(failed=(FailedSave(T0 + 8999, 100, "disk full"),)))
    assert [rule.name for rule in RULES if rule.check(state, ALERTS)] == []


def test_one_step_that_was_not_finite_is_enough_for_ten_minutes() -> None:
    state = with_rank(running(t=T0 + 500), 3, nonfinite_total=1, nonfinite_step=90, nonfinite_t=T0 + 400)
    bad = firing("TrainingLossNotFinite", state)
    assert bad is not None
    assert bad.value == 1
    assert "on rank 3 (last at step 90, " in bad.summary
    assert firing("TrainingLossNotFinite", replace(state, t=T0 + 1000)) is None


def test_a_loss_that_is_still_not_finite_stays_an_alert_while_the_run_stands() -> None:
    state = running(t=T0 + 4000, last_step_t=T0 + 400)
    state = with_rank(state, 3, nonfinite_total=1, nonfinite_step=100, nonfinite_t=T0 + 400)
    assert firing("TrainingLossNotFinite", state) is not None


def test_a_loss_that_a_log_tells_of_all_is_said_to_be_of_no_rank() -> None:
    bad = {"nonfinite_total": 1, "nonfinite_step": 100, "nonfinite_t": T0 + 400}
    state = with_rank(running(t=T0 + 500, ranks=1), 0, speaks_for_all=True, **bad)
    found = firing("TrainingLossNotFinite", state)
    assert found is not None
    assert "the loss was not finite (last at step 100" in found.summary


def attempts(*started: float) -> tuple[Attempt, ...]:
    return tuple(Attempt(number, t) for number, t in enumerate(started))


def test_three_restarts_in_half_an_hour_are_a_loop_even_before_the_first_step() -> None:
    state = RunState(
        "r42", t=T0 + 900, state="restarting", attempt=3, attempts=attempts(T0, T0 + 300, T0 + 600, T0 + 900)
    )
    loop = firing("TrainingRestartLoop", state)
    assert loop is not None
    assert (
        loop.summary
        == "r42: 3 restarts within 30 min, before the first step, attempt 3, restart under way (no. 3)"
    )
    assert firing("TrainingRestartLoop", replace(state, t=T0 + 2200)) is None, "only two of them are recent"
    two = replace(state, attempt=2, attempts=state.attempts[:3])
    assert firing("TrainingRestartLoop", two) is None


def test_a_restart_whose_lines_were_never_seen_counts() -> None:
    seen = (Attempt(0, T0), Attempt(3, T0 + 900))
    assert firing("TrainingRestartLoop", RunState("r42", t=T0 + 901, attempt=3, attempts=seen)) is not None


def test_the_first_failed_save_pages_with_its_error() -> None:
    failed = Checkpoints(failed=(FailedSave(T0 + 400, 80, "OSError: no space left on device"),))
    state = running(t=T0 + 500, checkpoints=failed)
    alert = firing("CheckpointSaveFailed", state)
    assert alert is not None
    assert (
        alert.summary
        == "r42: 1 failed checkpoint save, the last at step 80: OSError: no space left on device, "
        "step 100, attempt 0"
    )
    assert firing("CheckpointSaveFailed", replace(state, t=T0 + 5000)) is None


@pytest.mark.parametrize(
    ("durations", "fires"),
    [
        ((10.0, 11.0, 9.0, 40.0, 45.0), True),
        ((10.0, 11.0, 9.0, 40.0, 10.0), False),
        ((10.0, 11.0, 9.0, 10.0, 45.0), False),
        ((10.0, 40.0, 45.0), False),
        ((), False),
    ],
    ids=["two in a row", "one, then well again", "only the last", "too few to know the usual", "none yet"],
)
def test_two_slow_saves_in_a_row(durations: tuple[float, ...], fires: bool) -> None:
    state = running(t=T0 + 500, checkpoints=Checkpoints(durations_s=durations))
    assert (firing("CheckpointSaveFailed", state) is not None) is fires


def test_a_checkpoint_that_does_not_come_is_missed_but_not_while_the_run_stands() -> None:
    saves = Checkpoints(saved_step=400, saved_t=tuple(T0 + 100.0 * n for n in range(1, 6)))
    late = running(t=T0 + 701, checkpoints=saves)
    missed = firing("CheckpointSaveFailed", late)
    assert missed is not None
    assert "no checkpoint since step 400; one was due by" in missed.summary
    assert firing("CheckpointSaveFailed", replace(late, t=T0 + 699)) is None
    assert firing("CheckpointSaveFailed", replace(late, state="stalled")) is None
    just_restarted = replace(late, attempts=(Attempt(0, T0), Attempt(1, T0 + 650, first_step_t=T0 + 690)))
    assert firing("CheckpointSaveFailed", just_restarted) is None


def test_a_hang_between_frequent_checkpoints_is_no_missed_checkpoint() -> None:
    saves = Checkpoints(saved_step=400, saved_t=tuple(T0 + 25.0 * n for n in range(1, 6)))
    due_t = T0 + 125 + ALERTS.checkpoint_missed_floor_s
    run = running(t=due_t + 5, step=405, p50_step_time_s=0.5, checkpoints=saves)
    hangs = replace(run, last_step_t=T0 + 130)
    assert hangs.state == "running", "the stall's own limit is longer than the checkpoint's"
    assert firing("CheckpointSaveFailed", hangs) is None
    assert firing("CheckpointSaveFailed", run) is None, "it has just come back: the save is five steps behind"
    assert firing("CheckpointSaveFailed", replace(run, step=450)) is not None


def test_processes_that_are_gone_are_one_alert_that_names_the_ranks() -> None:
    state = with_rank(running(t=T0 + 500), 1, gone_t=T0 + 380)
    state = with_rank(state, 3, gone_t=T0 + 370)
    gone = firing("TrainingProcessGone", state)
    assert gone is not None
    assert gone.value == 2
    assert gone.since_t == T0 + 370
    assert gone.summary.startswith("r42: ranks 1,3 on node1: process gone since ")


def test_processes_that_are_gone_have_two_minutes_for_a_new_attempt() -> None:
    assert firing("TrainingProcessGone", with_rank(running(t=T0 + 500), 1, gone_t=T0 + 381)) is None


def test_a_process_that_said_it_ended_is_not_gone() -> None:
    assert (
        firing("TrainingProcessGone", with_rank(running(t=T0 + 500), 1, gone_t=T0 + 480, ended=True)) is None
    )


def test_a_silent_rank_is_gone_only_where_its_neighbours_went_on() -> None:
    state = with_rank(running(t=T0 + 500, step=300), 2, step=100, step_t=T0 + 300, heard_t=T0 + 300)
    gone = firing("TrainingProcessGone", state)
    assert gone is not None
    assert "rank 2 on node1: silent while others on the host go on, since " in gone.summary
    takes_long_steps = with_rank(state, 2, values={"step_time_s": 100.0})
    assert firing("TrainingProcessGone", takes_long_steps) is None
    all_silent = running(t=T0 + 500, last_step_t=T0 + 300)
    assert firing("TrainingProcessGone", all_silent) is None
    named_now_and_then = replace(state, by_logs=True)
    assert firing("TrainingProcessGone", named_now_and_then) is None
    only_logs_now_and_then = with_rank(running(t=T0 + 500), 2, step=None, step_t=None, heard_t=T0 + 6)
    assert firing("TrainingProcessGone", only_logs_now_and_then) is None
    late_behind_a_pause_of_all = with_rank(state, 2, step=298)
    assert firing("TrainingProcessGone", late_behind_a_pause_of_all) is None


def test_many_lost_ranks_are_drawn_together() -> None:
    state = running(t=T0 + 500, ranks=100)
    for rank in range(100):
        state = with_rank(state, rank, gone_t=T0 + 380)
    gone = firing("TrainingProcessGone", state)
    assert gone is not None
    assert "ranks 0-99 on node1" in gone.summary


def test_an_error_from_a_log_is_one_harmless_line() -> None:
    hostile = FailedSave(T0 + 400, 80, "disk\n\x1b[2J" + "x" * 9999)
    alert = firing("CheckpointSaveFailed", running(t=T0 + 500, checkpoints=Checkpoints(failed=(hostile,))))
    assert alert is not None
    assert "\n" not in alert.summary
    assert "\x1b" not in alert.summary
    assert len(alert.summary) < 600


def test_a_restart_under_way_is_on_record_for_half_an_hour() -> None:
    state = running(t=T0 + 500, state="restarting", since_t=T0 + 490, attempt=1)
    assert firing("TrainingRestarting", state) is not None
    assert firing("TrainingRestarting", replace(state, t=T0 + 490 + 1800)) is None
    assert firing("TrainingRestarting", running(t=T0 + 500)) is None


def test_what_design_says_inhibits_is_in_the_table() -> None:
    pairs = {(source, target) for each in INHIBITIONS for source in each.sources for target in each.targets}
    assert {("TrainingRestarting", "TrainingStepStalled"), ("GpuXidError", "TrainingProcessGone")} <= pairs
    assert ("GpuXidError", "GpuClockLow") in pairs
