"""Every alert works on the plain figures of the ranks, whoever exports them.

What our own exporter computes besides makes some of them sharper; these are the cases of a team whose
launcher or framework exports the figures by their names, or of a sidecar of another version.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dash.promtool import needs_promtool, replay
from train_ledger.config import Alerts

pytestmark = needs_promtool

RUN = {"run": "r42"}
GPU = {"run": "r42", "rank": "5", "host": "n0", "gpu": "5"}


class Case(NamedTuple):
    """Series as promtool writes them, a sample each `interval_s`, and when the alert is quiet and fires."""

    alert: str
    series: list[tuple[str, str]]
    quiet_min: float
    fires_min: float
    labels: dict[str, str] = RUN
    interval_s: float = 15


def constant(value: float, minutes: float, interval_s: float = 15) -> str:
    return f"{value:g}x{round(minutes * 60 / interval_s) - 1}"


def rising(start: float, by: float, minutes: float, interval_s: float = 15) -> str:
    return f"{start:g}+{by:g}x{round(minutes * 60 / interval_s) - 1}"


def ranks(name: str, values: str, count: int = 4, **odd: str) -> list[tuple[str, str]]:
    """The metric of ranks 0, 1, …; `odd` are the values of single ones, as rank_2="…"."""
    return [(f'{name}{{run="r42",rank="{rank}"}}', odd.get(f"rank_{rank}", values)) for rank in range(count)]


def of_run(name: str, values: str, more: str = "") -> tuple[str, str]:
    return f'{name}{{run="r42"{more}}}', values


def of_gpu(name: str, values: str, more: str = "") -> tuple[str, str]:
    return f'{name}{{gpu="5",UUID="GPU-5",hostname="n0",instance="n0:9400"{more}}}', values


def xid(code: str, level: str) -> tuple[str, str]:
    """The kernel of GPU 5's host tells it after 20 min."""
    labels = f'host="n0",gpu="5",uuid="GPU-5",code="{code}",level="{level}",instance="n0:9466"'
    return f"train_xid_total{{{labels}}}", f"_x79 {constant(1, 20)}"


def base(minutes: float, interval_s: float = 15, stops: float | None = None) -> list[tuple[str, str]]:
    """A run of eight ranks on one node whose steps go on until `stops`."""
    moving = minutes if stops is None else stops
    step_t = rising(1, interval_s, moving, interval_s)
    if stops is not None:
        step_t += f" {constant(moving * 60, minutes - stops, interval_s)}"
    info = [
        (f'train_rank_info{{run="r42",rank="{it}",host="n0",gpu="{it}",uuid="GPU-{it}",instance="n0:9466"}}',
         constant(1, minutes, interval_s))
        for it in range(8)
    ]  # fmt: skip
    sidecar = ',instance="n0:9466"'
    return [
        of_run("train_exporter_clock_seconds", rising(1, interval_s, minutes, interval_s), sidecar),
        of_run("train_stall_threshold_seconds", constant(90, minutes, interval_s), sidecar),
        of_run("train_run_finished", constant(0, minutes, interval_s), sidecar),
        *(
            (f'train_last_step_completed_timestamp_seconds{{run="r42",rank="{it}"{sidecar}}}', step_t)
            for it in range(8)
        ),
        *info,
    ]


def then(before: float, after: float, at_min: float, minutes: float, interval_s: float = 15) -> str:
    return f"{constant(before, at_min, interval_s)} {constant(after, minutes - at_min, interval_s)}"


PAGES = [
    Case("TrainingStepStalled", base(30, stops=10), 11, 12.5),
    Case(
        "TrainingStepTimeRegressed",
        [*base(180), *ranks("train_step_time_s", then(12, 40, 120, 180))],
        119,
        135,
    ),
    Case(
        "TrainingLossNotFinite",
        [*base(30), *ranks("train_loss_nonfinite_total", constant(0, 30), rank_2=then(0, 1, 10, 30))],
        9,
        11,
    ),
    Case("TrainingRestartLoop", [*base(60), of_run("train_restart_total", then(0, 3, 20, 60))], 19, 21),
    Case(
        "CheckpointSaveFailed",
        [*base(60), of_run("train_ckpt_failed_total", f"_x79 {constant(1, 40)}")],
        19,
        21,
    ),
    Case(
        "TrainingMfuDegraded",
        [
            *base(120),
            *ranks("train_mfu", then(40, 30, 40, 120), rank_1=constant(7, 120)),
            of_run("train_mfu_baseline", constant(40, 120)),
        ],
        60,
        75,
    ),
    Case(
        "GpuXidError",
        [*base(40), xid("79", "page")],
        19,
        21,
        {**GPU, "xid": "79"},
    ),
    Case(
        "GpuXidError",
        [*base(40), of_gpu("DCGM_FI_DEV_XID_ERRORS", then(0, 79, 20, 40))],
        19,
        21,
        {**GPU, "xid": "79"},
    ),
    Case(
        "GpuXidError",
        [
            *base(40),
            of_gpu(
                "DCGM_FI_DEV_XID_ERRORS", f"_x79 {constant(79, 20)}", ',err_code="79",err_msg="off the bus"'
            ),
        ],
        19,
        21,
        {**GPU, "xid": "79"},
    ),
    Case("GpuEccDbe", [*base(40), of_gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", then(0, 1, 20, 40))], 19, 21, GPU),
    Case("GpuEccDbe", [*base(40), of_gpu("DCGM_FI_DEV_ROW_REMAP_PENDING", then(0, 1, 20, 40))], 19, 21, GPU),
    Case(
        "EffectiveTrainingTimeLow",
        [*base(600, 60), of_run("train_effective_fraction", constant(0.7, 600, 60))],
        120,
        420,
        interval_s=60,
    ),
    Case(
        "TrainingProcessGone",
        [*base(30), *ranks("train_process_up", constant(1, 30), rank_2=then(1, 0, 10, 30))],
        11,
        13,
    ),
    Case(
        "DataPositionRegressed",
        [*base(30), of_run("train_data_position_regressed_total", then(0, 1, 10, 30))],
        9,
        11,
    ),
    Case(
        "TrainingTelemetryLost",
        [
            *base(40),
            of_run("train_exporter_clock_seconds", rising(1, 15, 15), ',instance="n1:9466"'),
            (
                'train_rank_info{run="r42",rank="8",host="n1",gpu="0",uuid="GPU-x",instance="n1:9466"}',
                constant(1, 15),
            ),
            (
                'train_last_step_completed_timestamp_seconds{run="r42",rank="8",instance="n1:9466"}',
                rising(1, 15, 15),
            ),
        ],
        16,
        22,
        {"run": "r42", "host": "n1"},
    ),
]

RECORDS = [
    Case(
        "RankStepTimeOutlier",
        [
            *base(90),
            *ranks("train_step_time_s", constant(10, 90), 8),
            *ranks("train_compute_s", constant(7, 90), 8, rank_5=then(7, 9.5, 30, 90)),
        ],
        29,
        60,
        {"run": "r42", "rank": "5", "host": "n0"},
    ),
    Case(
        "GpuClockLow",
        [
            *base(120),
            of_gpu("DCGM_FI_DEV_SM_CLOCK", then(1980, 1200, 60, 120)),
            of_gpu("DCGM_FI_DEV_GPU_UTIL", constant(100, 120)),
            of_gpu("DCGM_FI_DEV_POWER_USAGE", constant(650, 120)),
        ],
        59,
        67,
        GPU,
    ),
    Case(
        "MemoryFragmentation",
        [
            *base(120),
            *ranks("train_mem_inactive_split", rising(1e9, 1e7, 120)),
            *ranks("train_num_alloc_retries_total", then(0, 4, 70, 120)),
        ],
        60,
        75,
    ),
    Case(
        "DataLoadingWait",
        [
            *base(90),
            *ranks("train_step_time_s", constant(10, 90)),
            *ranks("train_data_wait_s", constant(0.1, 90), rank_2=then(0.1, 3, 30, 90)),
        ],
        29,
        50,
    ),
    Case(
        "GpuEccSbeGrowing",
        [*base(120), of_gpu("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", then(3, 150, 60, 120))],
        59,
        62,
        GPU,
    ),
    Case(
        "NvlinkErrors",
        [*base(60), of_gpu("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", then(0, 5, 30, 60))],
        29,
        32,
        GPU,
    ),
    Case(
        "GradNormSpike",
        [*base(90), *ranks("train_grad_norm", f"{then(1, 30, 60, 60.5)} {constant(1, 29)}")],
        59,
        62,
    ),
    Case(
        "CheckpointSlow",
        [*base(200, 60), of_run("train_ckpt_duration_s", then(60, 200, 120, 200, 60))],
        119,
        125,
        interval_s=60,
    ),
    Case(
        "TrainingRestarting",
        [*base(30), of_run("train_run_state", then(0, 1, 10, 30), ',state="restarting"')],
        9,
        11,
    ),
    Case(
        "TrainingMfuDrift",
        [
            *base(120),
            *ranks("train_mfu", then(40, 36.5, 40, 120)),
            of_run("train_mfu_baseline", constant(40, 120)),
        ],
        60,
        75,
    ),
    Case(
        "GpuXidRecorded",
        [*base(40), xid("63", "record")],
        19,
        21,
        {**GPU, "xid": "63"},
    ),
]


def replayed(tmp_path: Path, case: Case) -> None:
    series: list[dict[str, Any]] = [{"series": name, "values": values} for name, values in case.series]
    expected = {
        f"{case.alert} at {case.quiet_min:g}": [],
        f"{case.alert} at {case.fires_min:g}": [case.labels],
    }
    alerts = Alerts(evaluation_interval_s=case.interval_s)
    replay(tmp_path, series, expected, alerts=alerts, sample_s=case.interval_s)


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case.alert)
def test_pages(tmp_path: Path, case: Case) -> None:
    replayed(tmp_path, case)


@pytest.mark.parametrize("case", RECORDS, ids=lambda case: case.alert)
def test_records(tmp_path: Path, case: Case) -> None:
    replayed(tmp_path, case)
