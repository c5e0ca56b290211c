"""The two judges agree: on the same run the embedded one and Prometheus say the same, at the same time."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dash.backtest.happenings import (
    LAST,
    data_goes_back,
    gpu_reads,
    gpu_vanishes,
    host_falls_silent,
    rank_falls_silent,
)
from dash.backtest.made import Made
from train_ledger.chaos import fleet
from train_ledger.config import Alerts, Config
from train_ledger.dash.backtest import PastAlert, Recording, Replay, alerts_by_prometheus, record
from train_ledger.dash.rules import RULES

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (prometheus)"
)

SOON = Alerts(
    stall_floor_s=20.0,
    start_up_limit_s=60.0,
    loss_window_s=60.0,
    restart_loop_window_s=600.0,
    checkpoint_window_s=120.0,
    process_gone_s=20.0,
    restart_inhibits_s=60.0,
    keep_firing_s=30.0,
)
"""So that a short run shows what takes hours otherwise."""

Occurrence = tuple[str, dict[str, str], str, float, float | None, bool]


def both(recording: Recording, alerts: Alerts) -> tuple[list[Occurrence], list[Occurrence]]:
    """What the embedded judge and Prometheus say of a run, until nothing more can be paged."""
    config = Config(alerts=alerts)
    replay = Replay(recording.run, config, recording.run_json)
    until_t = replay.play_to_end(recording.known)
    began_t = recording.began_t
    theirs = alerts_by_prometheus(recording, config, until_t)
    return occurrences(replay.alerts, began_t), occurrences(theirs, began_t)


def occurrences(alerts: Sequence[PastAlert], began_t: float) -> list[Occurrence]:
    """Seconds from the run's first line on, so that a failure can be read."""
    return sorted(
        (
            (
                it.name,
                dict(it.labels),
                it.level,
                round(it.fired_t - began_t, 1),
                None if it.resolved_t is None else round(it.resolved_t - began_t, 1),
                it.inhibited,
            )
            for it in alerts
        ),
        key=lambda it: (it[0], sorted(it[1].items()), it[3]),
    )


def assert_agree(
    ours: list[Occurrence], theirs: list[Occurrence], fired_s: float = 5.0, resolved_s: float = 5.0
) -> None:
    assert [(it[:3], it[5]) for it in ours] == [(it[:3], it[5]) for it in theirs], (ours, theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert abs(own[3] - other[3]) <= fired_s, (own, other)
        assert (own[4] is None) == (other[4] is None), (own, other)
        assert own[4] is None or other[4] is None or abs(own[4] - other[4]) <= resolved_s, (own, other)


PAGED = {
    None: set(),
    "hang": {"TrainingStepStalled"},
    "init_hang": {"TrainingStepStalled"},
    "process_gone": {"TrainingStepStalled"},
    "exception": {"TrainingStepStalled"},
    "nan": {"TrainingLossNotFinite"},
    "restart": set(),
    "restart_loop": {"TrainingRestartLoop"},
    "killed": {"TrainingStepStalled"},
    "checkpoint_failed": {"CheckpointSaveFailed"},
    "slow_rank": set(),
    "slow_all": set(),
}
"""What each fault of a job has to page, whatever else it does."""


@pytest.mark.parametrize("fault", sorted(fleet.FAULTS, key=str))
def test_of_a_job_with_two_hosts_whose_clocks_differ(fault: str | None, tmp_path: Path) -> None:
    # Before a step that both completed nothing in the files says how far apart two clocks are.
    offsets_s = {} if fault == "init_hang" else {"node001": 33.0}
    job = fleet.write(
        tmp_path / "r42",
        ranks_per_host=2,
        fault=fault,
        culprit=3,
        steps=60,
        checkpoint_every=20,
        clock_offsets_s=offsets_s,
    )
    recording = record(job.run_dir)
    ours, theirs = both(recording, SOON)
    assert_agree(ours, theirs)
    assert {it[0] for it in ours if it[2] == "page"} >= PAGED[fault]


def test_every_fault_of_the_fleet_is_held_against_both() -> None:
    assert PAGED.keys() == fleet.FAULTS.keys()


# -- runs made for one rule each

SHORT = replace(
    SOON,
    xid_window_s=120.0,
    ecc_window_s=120.0,
    gpu_lost_s=60.0,
    clock_low_s=60.0,
    link_window_s=120.0,
    ecc_sbe_window_s=600.0,
    telemetry_lost_s=60.0,
    effective_window_s=900.0,
    effective_from_age_s=300.0,
    step_recent_s=60.0,
    step_usual_window_s=300.0,
    step_usual_offset_s=60.0,
    step_usual_least_steps=20,
    mfu_window_s=120.0,
    data_wait_window_s=100.0,
    fragmentation_window_s=120.0,
    outlier_least_steps=10,
    checkpoint_slow_floor_s=10.0,
    checkpoint_missed_floor_s=20.0,
)

GPU = {"run": "r42", "rank": "3", "host": "node1", "gpu": "1"}


def xid(code: int) -> Callable[[Made], object]:
    return lambda run: run.go(120).xid(code, 3).go(300)


def port_reads(**values: float) -> Callable[[Made], object]:
    def happen(run: Made) -> None:
        run.ports = {"node0": {}, "node1": {}}
        run.go(400)
        run.ports["node1"] = values
        run.go(300)

    return happen


def falls_off_the_bus(run: Made) -> None:
    """The kernel says so, and nobody completes a step any more."""
    run.go(120).xid(79, 3).go(100, steps=False)
    run.go(60)


def clock_is_low_thrice(run: Made) -> None:
    for _ in range(3):
        run.gpus[LAST] = {}
        run.go(60)
        run.gpus[LAST] = {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 8.0}
        run.go(120)


def time_is_lost(run: Made) -> None:
    run.go(400)
    run.restart(240, at_step=10).go(60).restart(120, at_step=10).go(300)


def steps_become(*, after_s: float = 200, step_s: float = 5.0, **values: float) -> Callable[[Made], object]:
    """From then on every rank's steps are such."""

    def happen(run: Made) -> None:
        run.values |= {"mfu": 40.0, "mfu_baseline": 40.0, "data_wait_s": 0.01, "grad_norm": 1.0}
        run.go(after_s)
        run.step_s = step_s
        run.values |= values
        run.go(300)

    return happen


def norm_spikes(run: Made) -> None:
    run.values["grad_norm"] = 1.0
    run.go(200)
    run.values["grad_norm"] = 30.0
    run.go(5)
    run.values["grad_norm"] = 1.0
    run.go(200)


def one_rank_works_longer(run: Made) -> None:
    run.values["compute_s"] = 4.0
    run.go(120)
    run.values_of[3] = {"compute_s": 5.0}
    run.go(200)


def memory_falls_to_pieces(run: Made) -> None:
    run.values |= {"num_alloc_retries": 0, "mem_inactive_split": 1e9}
    run.go(120)
    run.values |= {"num_alloc_retries": 3, "mem_inactive_split": 4e9}
    run.go(300)


def saves(*took_s: float, then_s: float = 100) -> Callable[[Made], object]:
    """A checkpoint each 50 s, that took so long, and then none."""

    def happen(run: Made) -> None:
        for each_s in took_s:
            run.go(50).save(each_s)
        run.go(then_s)

    return happen


def one_loss_is_none(run: Made) -> None:
    run.go(100)
    run.values_of[3] = {"loss": math.nan}
    run.go(5)
    run.values_of[3] = {}
    run.go(200)


MADE: dict[str, tuple[str, Callable[[Made], object], str, dict[str, str]]] = {
    "xid": ("", xid(79), "GpuXidError", {**GPU, "xid": "79"}),
    "xid_and_stall": ("", falls_off_the_bus, "TrainingStepStalled", {"run": "r42"}),
    "xid_beside_dcgm": ("dcgm", xid(79), "GpuXidError", {**GPU, "xid": "79"}),
    "xid_on_record": ("", xid(63), "GpuXidRecorded", {**GPU, "xid": "63"}),
    "xid_by_dcgm": ("dcgm", gpu_reads(DCGM_FI_DEV_XID_ERRORS=79), "GpuXidError", {**GPU, "xid": "79"}),
    "dbe": ("dcgm", gpu_reads(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL=1), "GpuEccDbe", GPU),
    "dbe_by_nvml": ("nvml", gpu_reads(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL=1), "GpuEccDbe", GPU),
    "remap": ("dcgm", gpu_reads(DCGM_FI_DEV_ROW_REMAP_PENDING=1), "GpuEccDbe", GPU),
    "sbe": ("dcgm", gpu_reads(700, DCGM_FI_DEV_ECC_SBE_VOL_TOTAL=200), "GpuEccSbeGrowing", GPU),
    "clock": ("dcgm", gpu_reads(DCGM_FI_DEV_CLOCKS_EVENT_REASONS=8), "GpuClockLow", GPU),
    "clock_by_nvml": ("nvml", gpu_reads(DCGM_FI_DEV_CLOCKS_EVENT_REASONS=8), "GpuClockLow", GPU),
    "clock_thrice": ("dcgm", clock_is_low_thrice, "GpuClockLowRepeated", GPU),
    "nvlink": ("dcgm", gpu_reads(DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL=9), "NvlinkErrors", GPU),
    "gpu_lost": ("dcgm", gpu_vanishes(120, 300), "GpuLost", GPU),
    "gpu_lost_by_nvml": ("nvml", gpu_vanishes(120, 300), "GpuLost", GPU),
    "port_errors": ("", port_reads(symbol_error_total=5), "NicErrors", {}),
    "port_down": ("", port_reads(state_id=1), "NicErrors", {}),
    "host_silent": (
        "",
        host_falls_silent(120, 300),
        "TrainingTelemetryLost",
        {"run": "r42", "host": "node1"},
    ),
    "rank_silent": ("", rank_falls_silent(120, 300), "TrainingProcessGone", {"run": "r42"}),
    "time_lost": ("", time_is_lost, "EffectiveTrainingTimeLow", {"run": "r42"}),
    "slower": ("", steps_become(after_s=500, step_s=15.0), "TrainingStepTimeRegressed", {"run": "r42"}),
    "mfu": ("", steps_become(mfu=30.0), "TrainingMfuDegraded", {"run": "r42"}),
    "mfu_drifts": ("", steps_become(mfu=36.5), "TrainingMfuDrift", {"run": "r42"}),
    "data_wait": ("", steps_become(data_wait_s=1.0), "DataLoadingWait", {"run": "r42"}),
    "outlier": (
        "",
        one_rank_works_longer,
        "RankStepTimeOutlier",
        {"run": "r42", "rank": "3", "host": "node1"},
    ),
    "memory": ("", memory_falls_to_pieces, "MemoryFragmentation", {"run": "r42"}),
    "norm": ("", norm_spikes, "GradNormSpike", {"run": "r42"}),
    "save_slow": ("", saves(5, 5, 5, 5, 5, 15), "CheckpointSlow", {"run": "r42"}),
    "saves_slow": ("", saves(5, 5, 5, 5, 5, 40, 40), "CheckpointSaveFailed", {"run": "r42"}),
    "save_missing": ("", saves(5, 5, 5, 5, 5, then_s=250), "CheckpointSaveFailed", {"run": "r42"}),
    "loss": ("", one_loss_is_none, "TrainingLossNotFinite", {"run": "r42"}),
    "data": ("", data_goes_back(640, 30), "DataPositionRegressed", {"run": "r42"}),
}
"""Who looks at the GPUs, what happens, which alert tells of it, and with which labels ({}: any)."""


LOOK_S = 10.0
SLOT_S = 60.0
LATER: dict[str, tuple[float, float]] = {
    # Who vanishes is missed at the next look.
    "gpu_lost": (LOOK_S, 5.0),
    "gpu_lost_by_nvml": (LOOK_S, 5.0),
    # Of an hour the rules file looks at every minute, so that it forgets up to a minute earlier.
    "nvlink": (5.0, SLOT_S),
    "port_errors": (5.0, SLOT_S),
}
"""By how much the two may differ in when it fires and is resolved, where that is more than an evaluation."""


QUICK = frozenset({"xid", "xid_and_stall", "dbe", "clock", "host_silent", "outlier", "norm", "loss"})


@pytest.mark.parametrize(
    "case", [it if it in QUICK else pytest.param(it, marks=pytest.mark.slow) for it in MADE]
)
def test_of_what_one_rule_is_for(case: str) -> None:
    by, happen, alert, labels = MADE[case]
    run = Made(by=by).start()
    happen(run)
    ours, theirs = both(run.recording(), SHORT)
    assert_agree(ours, theirs, *LATER.get(case, ()))
    assert alert in {it[0] for it in ours}, ours
    assert not labels or next(it[1] for it in ours if it[0] == alert) == labels


def test_every_rule_is_held_against_both() -> None:
    fleets = {name for names in PAGED.values() for name in names} | {"TrainingRestarting"}
    assert fleets | {alert for _, _, alert, _ in MADE.values()} >= {rule.name for rule in RULES}
