"""Each kind of incident is read off the raw lines, is found by its page, and no page beside it is false."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from dash.backtest.happenings import (
    LAST,
    data_goes_back,
    gpu_reads,
    gpu_vanishes,
    host_falls_silent,
    rank_falls_silent,
)
from dash.backtest.made import START_T, Made
from train_ledger.config import Alerts, Config, Xid
from train_ledger.dash.backtest import Known, PastIncident, Recording, Replay
from train_ledger.dash.backtest.happened import Happened
from train_ledger.dash.backtest.outcome import Outcome, outcome_of
from train_ledger.dash.backtest.signs import signs_in
from train_ledger.facts import Fault, Step

SHORT = Alerts(
    stall_floor_s=20.0,
    process_gone_s=20.0,
    keep_firing_s=30.0,
    xid_window_s=120.0,
    ecc_window_s=120.0,
    gpu_lost_s=60.0,
    clock_low_s=60.0,
    telemetry_lost_s=60.0,
    effective_window_s=7200.0,
    effective_from_age_s=3600.0,
    step_recent_s=120.0,
    step_usual_window_s=600.0,
    step_usual_offset_s=240.0,
    step_usual_least_steps=20,
    mfu_window_s=300.0,
    checkpoint_window_s=120.0,
    checkpoint_slow_floor_s=10.0,
    checkpoint_missed_floor_s=20.0,
)
"""So that a short run shows what takes hours otherwise."""

GPU = {"host": "node1", "gpu": "1"}


def judged(recording: Recording, config: Config) -> tuple[list[PastIncident], Outcome]:
    """What is read off the raw lines, and what the pages of the embedded judge are worth."""
    seen = Happened(config.alerts)
    replay = Replay(recording.run, config, recording.run_json, witness=seen.see)
    until_t = replay.play_to_end(recording.known)
    signs = signs_in(recording, config, recording.began_t, until_t)
    return signs, outcome_of([*seen.incidents(), *signs], replay.alerts, config.alerts)


def xid(code: int, times: int = 1) -> Callable[[Made], object]:
    def happen(run: Made) -> None:
        run.go(100)
        for _ in range(times):
            run.xid(code, 3).go(100)
        run.go(300)

    return happen


def falls_off_the_bus(run: Made) -> None:
    run.go(120).xid(79, 3).go(200, steps=False).go(60)


def is_hot_thrice(run: Made) -> None:
    for _ in range(3):
        run.gpus[LAST] = {}
        run.go(100)
        run.gpus[LAST] = {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 8.0}
        run.go(200)
    run.gpus[LAST] = {}
    run.go(100)


def becomes(after_s: float, step_s: float = 5.0, **values: float) -> Callable[[Made], object]:
    def happen(run: Made) -> None:
        run.values |= {"mfu": 40.0, "mfu_baseline": 40.0}
        run.go(after_s)
        run.step_s = step_s
        run.values |= values
        run.go(900)

    return happen


def time_is_lost(run: Made) -> None:
    for _ in range(4):
        run.go(800).restart(400, at_step=run.step)
    run.go(200)


def saves(*took_s: float, then_s: float = 100) -> Callable[[Made], object]:
    def happen(run: Made) -> None:
        for each_s in took_s:
            run.go(50).save(each_s)
        run.go(then_s)

    return happen


Case = tuple[str, Callable[[Made], object], str, float, dict[str, str], str]
CASES: dict[str, Case] = {
    "xid": ("", xid(79), "xid", 100.0, GPU, "GpuXidError"),
    "xid_beside_dcgm": ("dcgm", xid(79), "xid", 100.0, GPU, "GpuXidError"),
    "xid_again": ("", xid(31, times=2), "xid", 200.0, GPU, "GpuXidError"),
    "xid_and_stall": ("", falls_off_the_bus, "xid", 120.0, GPU, "GpuXidError"),
    "xid_by_dcgm": ("dcgm", gpu_reads(200, DCGM_FI_DEV_XID_ERRORS=79), "xid", 210.0, GPU, "GpuXidError"),
    "dbe": ("dcgm", gpu_reads(200, DCGM_FI_DEV_ECC_DBE_VOL_TOTAL=1), "memory_error", 210.0, GPU, "GpuEccDbe"),
    "remap": (
        "nvml",
        gpu_reads(200, DCGM_FI_DEV_ROW_REMAP_PENDING=1),
        "memory_error",
        210.0,
        GPU,
        "GpuEccDbe",
    ),
    "gpu_lost": ("dcgm", gpu_vanishes(200, 400), "gpu_lost", 200.0, GPU, "GpuLost"),
    "hot": ("dcgm", is_hot_thrice, "clock_low", 710.0, GPU, "GpuClockLowRepeated"),
    "slower": ("", becomes(1500, step_s=15.0), "slower", 1500.0, {}, "TrainingStepTimeRegressed"),
    "mfu": ("", becomes(1500, mfu=30.0), "mfu_low", 1500.0, {}, "TrainingMfuDegraded"),
    "host": (
        "",
        host_falls_silent(200, 400),
        "host_silent",
        200.0,
        {"host": "node1"},
        "TrainingTelemetryLost",
    ),
    "process": ("", rank_falls_silent(200, 400), "process_gone", 200.0, {}, "TrainingProcessGone"),
    "time": ("", time_is_lost, "effective_low", 3300.0, {}, "EffectiveTrainingTimeLow"),
    "data": ("", data_goes_back(-640, 15), "data_position", 220.0, {}, "DataPositionRegressed"),
    "slow_saves": ("", saves(5, 5, 5, 5, 5, 40, 40), "saves_slow", 325.0, {}, "CheckpointSaveFailed"),
    "no_save": ("", saves(5, 5, 5, 5, 5, then_s=300), "saves_missing", 275.0, {}, "CheckpointSaveFailed"),
}
"""Who looks at the GPUs, what happens, of which kind it is, seconds from the start, where, found by whom."""

SLACK_S = {"slower": 20.0, "mfu": 120.0}


@pytest.mark.parametrize("name", CASES)
def test_it_is_read_off_the_lines_and_its_page_is_right(name: str) -> None:
    by, happen, kind, at_s, place, alert = CASES[name]
    run = Made(by=by).start()
    happen(run)
    signs, outcome = judged(run.recording(), Config(alerts=SHORT))
    (sign,) = (it for it in signs if it.kind == kind)
    assert sign.t - START_T == pytest.approx(at_s, abs=SLACK_S.get(name, 11.0))
    assert (sign.clear, dict(sign.place)) == (True, place)
    found = {it.incident.kind: it.found_by for it in outcome.found}
    assert found[kind] == alert
    assert (outcome.missed, [it.name for it in outcome.false_pages]) == ((), [])


@pytest.mark.parametrize("by", ["", "dcgm", "nvml"])
def test_a_healthy_run_has_no_incident_and_no_page(by: str) -> None:
    run = Made(by=by).start()
    run.ports = {"node0": {}, "node1": {}}
    run.values |= {"mfu": 40.0, "mfu_baseline": 40.0}
    for _ in range(8):
        run.go(400).save(8)
    run.restart(10, at_step=run.step - 10).go(400)
    signs, outcome = judged(run.recording(), Config(alerts=SHORT))
    assert (signs, outcome) == ([], Outcome((), (), ()))


def test_a_hang_between_frequent_saves_is_no_missing_save() -> None:
    run = Made().start()
    for _ in range(6):
        run.go(50).save(5)
    run.go(20).go(300, steps=False)
    run.go(20).save(5)
    run.go(50)
    signs, _ = judged(run.recording(), Config(alerts=SHORT))
    assert "saves_missing" not in {sign.kind for sign in signs}


def test_a_loop_lasts_for_as_long_as_the_run_comes_no_further() -> None:
    run = Made().start().go(60)
    for _ in range(4):
        run.restart(20, at_step=0)
    run.go(900, steps=False)
    _, outcome = judged(run.recording(), Config(alerts=replace(SHORT, start_up_limit_s=300.0)))
    assert {it.name for it in outcome.pages} == {"TrainingRestartLoop", "TrainingStepStalled"}
    assert [it.incident.kind for it in outcome.found] == ["restart_loop"]
    assert (outcome.missed, outcome.false_pages) == ((), ())


def test_what_is_no_page_by_the_table_is_no_incident() -> None:
    run = Made().start().go(100)
    recording = run.xid(63, 3).go(100).recording()
    assert signs_in(recording, Config(alerts=SHORT), recording.began_t, run.t) == []
    config = Config(alerts=SHORT, xid=Xid(page=(63,)))
    assert [it.kind for it in signs_in(recording, config, recording.began_t, run.t)] == ["xid"]


def test_a_fault_of_a_gpu_on_which_no_rank_is_is_none() -> None:
    run = Made().start().go(100).xid(79, 3)
    fault = run.known[-1].what
    assert isinstance(fault, Fault)
    elsewhere = replace(fault, details={**fault.details, "pci": "0000:77:00"})
    run.known[-1] = run.known[-1]._replace(what=elsewhere)
    recording = run.go(100).recording()
    assert signs_in(recording, Config(alerts=SHORT), recording.began_t, run.t) == []


def test_a_fault_of_a_gpu_that_the_run_has_left_is_none() -> None:
    """Ranks 2 and 3 go on on another host."""
    run = Made(by="dcgm").start().go(100)
    before = dict(run.leads)
    run.leads = {"node0": 0.0, "node2": 0.0}
    run.restart(20, at_step=10).go(100)
    run.leads, after = before, run.leads
    run.xid(79, 3)
    run.leads = after
    run.go(200)
    signs, outcome = judged(run.recording(), Config(alerts=SHORT))
    assert (signs, outcome.pages, outcome.missed) == ([], (), ())


def test_a_second_line_of_a_step_completes_none() -> None:
    """Rank 0 evaluates and tells figures of its last step, while the others wait for it."""
    run = Made().start().go(300)
    run.event("eval_start", [0])
    for _ in range(9):
        run.go(30, steps=False)
        run.known.append(Known(run.t, Step(run.t, run.step, 0, host="node0", values={"loss": 2.0})))
    run.event("eval_end", [0]).go(300)
    signs, _ = judged(run.recording(), Config(alerts=SHORT))
    assert signs == []


def test_nothing_is_read_off_what_was_not_known_then() -> None:
    run = Made().start().go(100)
    recording = run.xid(79, 3).go(300).recording()
    assert signs_in(recording, Config(alerts=SHORT), START_T, START_T + 90) == []
    (just_now,) = signs_in(recording, Config(alerts=SHORT), START_T, START_T + 110)
    assert not just_now.clear


def test_odd_numbers_of_lines_are_no_incident() -> None:
    run = Made().start()
    run.values |= {"mfu": math.nan, "mfu_baseline": math.inf, "consumed_samples": math.inf}
    recording = run.go(900).restart(10, at_step=10).go(300).recording()
    assert signs_in(recording, Config(alerts=SHORT), START_T, run.t) == []
