"""What is wrong with hardware is told once, with the rank that is on it, and of no GPU of somebody else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pytest

from dash.promtool import counting, needs_promtool, replay, replay_summary, series, steady
from train_ledger.config import Alerts
from train_ledger.dash.rules.hardware import HARDWARE_RULES

pytestmark = [needs_promtool, pytest.mark.slow]

NOBODY: list[dict[str, str]] = []
Series = list[dict[str, str]]


def nan(minutes: float) -> str:
    return " ".join(["NaN"] * round(minutes * 12))


def gpu_of(rank: int, host: str = "n0", run: str = "r42", **more: str) -> dict[str, str]:
    return {"run": run, "rank": str(rank), "host": host, "gpu": str(rank % 8), **more}


def xid_of(code: int, rank: int, host: str = "n0", run: str = "r42") -> dict[str, str]:
    return gpu_of(rank, host, run, xid=str(code))


def place(
    rank: int, values: str, host: str = "n0", run: str = "r42", uuid: str | None = None, attempt: int = 0
) -> Series:
    named = {} if uuid == "" else {"uuid": uuid or f"GPU-{host}-{rank % 8}"}
    info = {"run": run, "rank": rank, "host": host, "gpu": rank % 8, "instance": f"{host}:9466"}
    return [
        series("train_rank_info", values, **info, **named),
        series("train_restart_total", values.replace("1x", f"{attempt}x"), run=run, instance=f"{host}:9466"),
    ]


def node(
    minutes: float, host: str = "n0", run: str = "r42", ranks: Iterable[int] = range(8), alive: float = 0
) -> Series:
    """A host with ranks of a run that began long ago; its exporter lives for `alive` minutes."""
    lives = alive or minutes
    told: Series = [
        series("train_exporter_clock_seconds", counting(0, lives), run=run, instance=f"{host}:9466"),
        series("train_run_finished", steady(0, lives), run=run, instance=f"{host}:9466"),
        series("train_run_started_timestamp_seconds", steady(-9e5, lives), run=run, instance=f"{host}:9466"),
    ]
    for rank in ranks:
        told += place(rank, steady(1, lives), host, run)
    return told


def dcgm(
    name: str, values: str, gpu: int = 5, host: str = "n0", style: str = "Hostname", **more: str
) -> dict[str, str]:
    labels = {
        "UUID": f"GPU-{host}-{gpu}",
        "gpu": str(gpu),
        style: host,
        "instance": f"{host}:9400",
        "modelName": "H100",
        "device": f"nvidia{gpu}",
        **more,
    }
    inner = ",".join(f'{key}="{value}"' for key, value in labels.items() if value)
    return {"series": f"DCGM_FI_DEV_{name}{{{inner}}}", "values": values}


def kernel(
    code: int, values: str, gpu: int = 5, host: str = "n0", level: str = "page", name: str = "total"
) -> dict[str, str]:
    labels = {"host": host, "gpu": gpu, "uuid": f"GPU-{host}-{gpu}", "code": code, "level": level}
    inner = ",".join(f'{key}="{value}"' for key, value in {**labels, "instance": f"{host}:9466"}.items())
    return {"series": f"train_xid_{name}{{{inner}}}", "values": values}


def after(minutes: float, values: str) -> str:
    """Nothing, and then the values."""
    return f"_x{round(minutes * 12) - 1} {values}"


def then(*parts: tuple[float, float]) -> str:
    """Values, each for so many minutes."""
    return " ".join(f"{value:g}x{round(minutes * 12) - 1}" for value, minutes in parts)


def check(
    tmp_path: Path,
    given: Series,
    expected: Mapping[str, Collection[Mapping[str, str]]],
) -> None:
    replay(tmp_path, given, expected, rules=HARDWARE_RULES, alerts=Alerts(evaluation_interval_s=15))


# -- XIDs by the kernel


def test_a_counter_that_is_born_at_one_is_an_xid_and_is_told_for_its_window(tmp_path: Path) -> None:
    given = [*node(60), kernel(79, after(10, steady(1, 50)))]
    check(
        tmp_path,
        given,
        {
            "GpuXidError at 9": NOBODY,
            "GpuXidError at 10.2": [xid_of(79, 5)],
            "GpuXidError at 39": [xid_of(79, 5)],
            "GpuXidError at 50": NOBODY,
            "GpuXidRecorded at 15": NOBODY,
        },
    )


def test_when_it_was_decides_where_the_sidecar_says_so(tmp_path: Path) -> None:
    """A sidecar that begins late tells of an old one, and one that begins anew of what it told before."""
    late = after(120, steady(1, 30))
    gap = f"{after(100, steady(1, 5))} _x60 {steady(1, 40)}"
    given = [
        *node(150),
        kernel(79, late),
        kernel(79, after(120, steady(600, 30)), name="last_timestamp_seconds"),
        kernel(48, late, gpu=6),
        kernel(48, after(120, steady(7000, 30)), gpu=6, name="last_timestamp_seconds"),
        kernel(95, gap, gpu=7),
        kernel(95, gap.replace(" 1x", " 6000x"), gpu=7, name="last_timestamp_seconds"),
    ]
    check(
        tmp_path,
        given,
        {
            "GpuXidError at 101": [xid_of(95, 7)],
            "GpuXidError at 121": [xid_of(95, 7), xid_of(48, 6)],
            "GpuXidError at 140": [xid_of(48, 6)],
        },
    )


def test_it_outlives_the_exporter_and_the_node(tmp_path: Path) -> None:
    given = [
        *node(30, alive=10.5),
        kernel(79, after(10, steady(1, 0.5))),
        *node(30, "n1", ranks=range(8, 16)),
    ]
    check(tmp_path, given, {"GpuXidError at 12": [xid_of(79, 5)], "GpuXidError at 25": [xid_of(79, 5)]})


def test_only_the_second_of_a_program_s_faults_pages(tmp_path: Path) -> None:
    given = [
        *node(40),
        kernel(31, after(5, steady(1, 35)), level="record"),
        kernel(31, after(20, steady(1, 20)), level="page"),
        kernel(45, after(5, then((1, 1), (200, 30))), gpu=1, level="record"),
        kernel(63, after(5, steady(1, 30)), gpu=2, level="ignore"),
    ]
    check(
        tmp_path,
        given,
        {
            "GpuXidError at 6": NOBODY,
            "GpuXidRecorded at 6": [xid_of(31, 5), xid_of(45, 1)],
            "GpuXidError at 21": [xid_of(31, 5)],
            "GpuXidRecorded at 21": [xid_of(45, 1)],
        },
    )


def test_the_page_says_what_it_means_what_to_do_and_where_the_run_stands(tmp_path: Path) -> None:
    given = [
        *node(12),
        kernel(79, after(10, steady(1, 2))),
        series("train_xid_info", steady(1, 12), code="79", meaning="fell off the bus", action="reboot it"),
        series("train_step", steady(51300, 12), rank=5),
        series("train_run_state", steady(0, 12), state="restarting"),
    ]
    summary = "r42: XID 79 on n0 gpu 5 (rank 5), step 51300, attempt 0: fell off the bus; do: reboot it"
    replay_summary(tmp_path, given, HARDWARE_RULES[0], 11, summary, xid_of(79, 5))
    bare = [it for it in given if "rank_info" in it["series"] or "xid_total" in it["series"]]
    replay_summary(tmp_path, bare, HARDWARE_RULES[0], 11, "r42: XID 79 on n0 gpu 5 (rank 5)", xid_of(79, 5))


def test_two_nodes_and_two_runs_are_kept_apart(tmp_path: Path) -> None:
    given = [
        *node(20),
        *node(20, "n1", ranks=range(8, 16)),
        *node(20, "n2", "other"),
        kernel(79, after(10, steady(1, 10)), host="n1"),
        kernel(48, after(10, steady(1, 10)), host="n2"),
        kernel(74, after(10, steady(1, 10)), host="n9"),
    ]
    check(tmp_path, given, {"GpuXidError at 12": [xid_of(79, 13, "n1"), xid_of(48, 5, "n2", "other")]})


def test_a_run_that_went_on_elsewhere_is_not_told_of_the_gpu_that_it_left(tmp_path: Path) -> None:
    moved = [
        *node(60),
        kernel(79, after(10, steady(1, 50))),
        series("train_exporter_clock_seconds", after(15, counting(900, 45)), instance="n7:9466"),
    ]
    for rank in range(8):
        moved += place(rank, after(15, steady(1, 45)), "n7", attempt=1)
    stays = [it for it in moved if 'rank="5"' not in it["series"] or 'host="n7"' not in it["series"]]
    quiet = {"GpuXidError at 14": [xid_of(79, 5)], "GpuXidError at 22": NOBODY}
    check(tmp_path, moved, quiet)
    check(tmp_path, stays, {"GpuXidError at 22": [xid_of(79, 5)]})


def test_after_the_end_nobody_is_told(tmp_path: Path) -> None:
    given = [it for it in node(40) if "finished" not in it["series"]]
    given += [
        series("train_run_finished", then((0, 9), (1, 31))),
        kernel(79, after(10, steady(1, 30))),
        dcgm("ECC_DBE_VOL_TOTAL", then((0, 10), (1, 30))),
        dcgm("XID_ERRORS", then((0, 10), (48, 30))),
    ]
    check(tmp_path, given, {"GpuXidError at 12": NOBODY, "GpuEccDbe at 12": NOBODY})


# -- XIDs by DCGM


@pytest.mark.parametrize("style", ["Hostname", "hostname"])
@pytest.mark.parametrize("labelled", [False, True])
def test_a_code_that_dcgm_goes_on_telling_is_news_for_its_window(
    tmp_path: Path, style: str, labelled: bool
) -> None:
    told = (
        [
            dcgm("XID_ERRORS", f"{then((0, 20))} stale", style=style, err_code="0"),
            dcgm("XID_ERRORS", after(20, steady(79, 200)), style=style, err_code="79", err_msg="off the bus"),
        ]
        if labelled
        else [dcgm("XID_ERRORS", then((0, 20), (79, 200)), style=style)]
    )
    quiet = [dcgm("XID_ERRORS", steady(0, 220), gpu=1, style=style), dcgm("XID_ERRORS", nan(220), gpu=2)]
    check(
        tmp_path,
        [*node(220), *told, *quiet],
        {
            "GpuXidError at 19": NOBODY,
            "GpuXidError at 20.2": [xid_of(79, 5)],
            "GpuXidError at 49": [xid_of(79, 5)],
            "GpuXidError at 60": NOBODY,
            "GpuXidError at 200": NOBODY,
            "GpuXidRecorded at 30": NOBODY,
        },
    )


def test_what_a_program_did_wakes_nobody(tmp_path: Path) -> None:
    given = [*node(30)]
    given += [
        dcgm("XID_ERRORS", then((0, 10), (code, 20)), gpu=gpu)
        for gpu, code in enumerate((13, 31, 43, 45, 63, 60, 149))
    ]
    expected = [xid_of(code, rank) for rank, code in enumerate((13, 31, 43, 45, 63)) if code != 60]
    check(tmp_path, given, {"GpuXidError at 12": NOBODY, "GpuXidRecorded at 12": [*expected, xid_of(149, 6)]})


def test_a_code_that_is_there_when_its_exporter_starts(tmp_path: Path) -> None:
    """Is news – unless it was there before the run, or only its exporter was away."""
    young = [it for it in node(90) if "started" not in it["series"]]
    young.append(series("train_run_started_timestamp_seconds", steady(1200, 90)))
    given = [
        *young,
        dcgm("XID_ERRORS", after(30, steady(79, 60))),
        dcgm("XID_ERRORS", then((74, 90)), gpu=6),
        dcgm("XID_ERRORS", f"{then((0, 25), (95, 15))} _x119 {steady(95, 40)}", gpu=7),
    ]
    check(
        tmp_path,
        given,
        {
            "GpuXidError at 31": [xid_of(79, 5), xid_of(95, 7)],
            "GpuXidError at 52": [xid_of(79, 5), xid_of(95, 7)],
            "GpuXidError at 63": [xid_of(79, 5)],
            "GpuXidError at 80": NOBODY,
        },
    )


def test_the_same_code_again_is_news_again(tmp_path: Path) -> None:
    given = [*node(120), dcgm("XID_ERRORS", then((0, 5), (79, 60), (0, 2), (79, 50)))]
    check(tmp_path, given, {"GpuXidError at 60": NOBODY, "GpuXidError at 68": [xid_of(79, 5)]})


def test_a_code_outlives_the_gpu_that_told_it(tmp_path: Path) -> None:
    given = [*node(30), dcgm("XID_ERRORS", f"{then((0, 10), (79, 1))} stale")]
    given += [dcgm("XID_ERRORS", steady(0, 30), gpu=gpu) for gpu in range(5)]
    check(tmp_path, given, {"GpuXidError at 18": [xid_of(79, 5)]})


def test_where_both_tell_there_is_one_alert(tmp_path: Path) -> None:
    given = [
        *node(30),
        kernel(79, after(10, steady(1, 20))),
        dcgm("XID_ERRORS", then((0, 10.2), (79, 20))),
        dcgm("XID_ERRORS", then((0, 10.2), (48, 20)), gpu=6, style="hostname"),
    ]
    check(tmp_path, given, {"GpuXidError at 12": [xid_of(79, 5), xid_of(48, 6)]})


def test_gpus_of_no_rank_and_parts_of_gpus_are_nobody_s(tmp_path: Path) -> None:
    given = [
        *node(30, ranks=range(4)),
        dcgm("XID_ERRORS", then((0, 10), (79, 20)), gpu=5),
        dcgm("XID_ERRORS", then((0, 10), (79, 20)), gpu=2, GPU_I_ID="3", GPU_I_PROFILE="1g.10gb"),
        dcgm("ECC_DBE_VOL_TOTAL", then((0, 10), (1, 20)), gpu=5),
    ]
    check(tmp_path, given, {"GpuXidError at 12": NOBODY, "GpuEccDbe at 12": NOBODY})


def test_without_a_uuid_of_the_rank_host_and_index_say_whose_it_is(tmp_path: Path) -> None:
    """Also where both exporters call their host localhost: then by the target's address."""
    given: Series = []
    for number, host in enumerate(("n0", "n1")):
        given += node(30, host, ranks=())
        for rank in range(8 * number, 8 * number + 8):
            given += place(rank, steady(1, 30), host, uuid="")
    local = {"Hostname": "localhost", "UUID": "GPU-x"}
    given += [
        dcgm("XID_ERRORS", then((0, 10), (79, 20)), host="n1", gpu=5, **local),
        dcgm("XID_ERRORS", steady(0, 30), host="n0", gpu=5, **{**local, "UUID": "GPU-y"}),
        dcgm("ECC_DBE_VOL_TOTAL", then((0, 10), (1, 20)), host="n0", gpu=3, instance="10.0.0.1:9400"),
    ]
    check(tmp_path, given, {"GpuXidError at 12": [xid_of(79, 13, "n1")], "GpuEccDbe at 12": [gpu_of(3)]})


def test_of_ranks_that_share_a_gpu_the_lowest_is_named(tmp_path: Path) -> None:
    given = [
        *node(30),
        *place(9, steady(1, 30), uuid="GPU-n0-5"),
        series("train_gpu_shared", steady(1, 30), rank=9, host="n0"),
        kernel(79, after(10, steady(1, 20))),
        dcgm("ECC_DBE_VOL_TOTAL", then((0, 10), (1, 20))),
    ]
    check(tmp_path, given, {"GpuXidError at 12": [xid_of(79, 5)], "GpuEccDbe at 12": [gpu_of(5)]})


# -- memory and links


def test_uncorrected_memory_errors(tmp_path: Path) -> None:
    given = [
        *node(150),
        dcgm("ECC_DBE_VOL_TOTAL", then((0, 10), (1, 140)), gpu=0),
        dcgm("ECC_DBE_VOL_TOTAL", after(10, steady(2, 140)), gpu=1, style="hostname"),
        dcgm("ECC_DBE_VOL_TOTAL", then((3, 110), (0, 2), (1, 38)), gpu=2),
        dcgm("ECC_DBE_VOL_TOTAL", nan(150), gpu=3),
        dcgm("ROW_REMAP_PENDING", then((0, 10), (1, 20), (0, 120)), gpu=4),
        dcgm("ECC_DBE_VOL_TOTAL", f"{then((0, 10), (1, 1))} stale", gpu=6),
    ]
    at_first = [gpu_of(rank) for rank in (0, 1, 2, 4, 6)]
    check(
        tmp_path,
        given,
        {
            "GpuEccDbe at 9": [gpu_of(2)],
            "GpuEccDbe at 12": at_first,
            "GpuEccDbe at 40": [gpu_of(rank) for rank in (0, 1, 2, 6)],
            "GpuEccDbe at 100": NOBODY,
            "GpuEccDbe at 114": [gpu_of(2)],
        },
    )


def test_corrected_memory_errors_that_grow(tmp_path: Path) -> None:
    given = [
        *node(100),
        dcgm("ECC_SBE_VOL_TOTAL", then((7, 60), (108, 40)), gpu=0),
        dcgm("ECC_SBE_VOL_TOTAL", then((7, 60), (107, 40)), gpu=1),
        dcgm("ECC_SBE_VOL_TOTAL", then((5000, 60), (0, 1), (50, 39)), gpu=2),
        dcgm("ECC_SBE_VOL_TOTAL", after(60, steady(900, 40)), gpu=3),
        dcgm("ECC_SBE_VOL_TOTAL", nan(100), gpu=4),
    ]
    check(tmp_path, given, {"GpuEccSbeGrowing at 59": NOBODY, "GpuEccSbeGrowing at 62": [gpu_of(0)]})


def test_links_that_count_errors(tmp_path: Path) -> None:
    given = [
        *node(150),
        dcgm("NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", then((3, 30), (4, 120)), gpu=0),
        dcgm("NVLINK_REPLAY_ERROR_COUNT_TOTAL", then((0, 30), (9, 120)), gpu=1),
        dcgm("NVLINK_RECOVERY_ERROR_COUNT_TOTAL", steady(12, 150), gpu=2),
        dcgm("NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", then((12, 30), (0, 120)), gpu=3),
    ]
    check(
        tmp_path,
        given,
        {
            "NvlinkErrors at 29": NOBODY,
            "NvlinkErrors at 32": [gpu_of(0), gpu_of(1)],
            "NvlinkErrors at 95": NOBODY,
        },
    )


# -- GPUs that are gone


def test_a_gpu_that_is_no_longer_seen_while_others_are(tmp_path: Path) -> None:
    given = [*node(40), *node(40, "n1", ranks=range(8, 16)), *node(40, "n2", ranks=range(16, 24))]
    given += [dcgm("GPU_TEMP", steady(60, 40), gpu=gpu) for gpu in range(5)]
    given += [dcgm("GPU_TEMP", f"{then((60, 10))} stale", gpu=gpu) for gpu in (5, 6)]
    given.append(kernel(79, after(10, steady(1, 30)), gpu=6))
    given += [dcgm("GPU_TEMP", f"{then((60, 10))} stale", gpu=gpu, host="n1") for gpu in range(8)]
    given += [dcgm("GPU_TEMP", steady(60, 40), gpu=gpu, host="n2") for gpu in range(7)]
    check(
        tmp_path,
        given,
        {
            "GpuLost at 11": NOBODY,
            "GpuLost at 13": [gpu_of(5)],
            "GpuLost at 39": [gpu_of(5)],
            "GpuXidError at 13": [xid_of(79, 6)],
        },
    )


# -- clocks


def test_reasons_that_mean_trouble(tmp_path: Path) -> None:
    name, old = "CLOCKS_EVENT_REASONS", "CLOCK_THROTTLE_REASONS"
    given = [
        *node(40),
        dcgm(name, then((0, 10), (0x48, 30)), gpu=0),
        dcgm(old, then((0, 10), (0x20, 30)), gpu=1, style="hostname"),
        dcgm(name, then((0, 10), (0x4, 30)), gpu=2),
        dcgm(name, then((0, 10), (0x9, 30)), gpu=3),
        dcgm(name, then((0, 10), (0x12, 30)), gpu=4),
        dcgm(name, then((0, 10), (0x80, 3), (0, 1), (0x80, 4), (0, 22)), gpu=5),
        dcgm(name, nan(40), gpu=6),
        dcgm("POWER_USAGE", then((690, 10), (240, 30)), gpu=0),
    ]
    check(
        tmp_path,
        given,
        {
            "GpuClockLow at 14": NOBODY,
            "GpuClockLow at 16": [gpu_of(0), gpu_of(1)],
            "GpuClockLow at 19": [gpu_of(0), gpu_of(1)],
            "GpuClockLowRepeated at 19": NOBODY,
        },
    )


def test_a_card_that_idles_while_it_is_hot_says_nothing(tmp_path: Path) -> None:
    bits = then((0, 10), (0x40, 3), (0x41, 1), (0x40, 6), (0, 20))
    check(
        tmp_path,
        [*node(40), dcgm("CLOCKS_EVENT_REASONS", bits, gpu=0)],
        {"GpuClockLow at 14": NOBODY, "GpuClockLow at 16": [gpu_of(0)], "GpuClockLow at 22": NOBODY},
    )


def test_a_card_is_measured_by_its_own_usual_clock_under_load(tmp_path: Path) -> None:
    minutes = 90.0
    given = [*node(minutes)]
    given += [dcgm("GPU_UTIL", steady(100, minutes), gpu=gpu) for gpu in (0, 1, 2, 4)]
    given += [
        dcgm("GPU_UTIL", then((100, 60), (0, 30)), gpu=3),
        dcgm("SM_CLOCK", then((1980, 60), (1500, 30)), gpu=0),
        dcgm("SM_CLOCK", steady(1410, minutes), gpu=1),
        dcgm("SM_CLOCK", then((1980, 60), (1700, 30)), gpu=2),
        dcgm("SM_CLOCK", then((1980, 60), (210, 30)), gpu=3),
        dcgm("SM_CLOCK", f"{then((1980, 60))} {nan(30)}", gpu=4),
    ]
    check(tmp_path, given, {"GpuClockLow at 59": NOBODY, "GpuClockLow at 67": [gpu_of(0)]})


def test_the_third_time_on_one_card_pages_while_it_lasts(tmp_path: Path) -> None:
    low, good = (8.0, 8.0), (0.0, 20.0)
    given = [
        *node(120),
        dcgm("CLOCKS_EVENT_REASONS", then(good, low, good, low, good, (8.0, 20.0), good), gpu=0),
        dcgm("CLOCKS_EVENT_REASONS", then(good, low, good, (8.0, 60.0)), gpu=1),
    ]
    check(
        tmp_path,
        given,
        {
            "GpuClockLowRepeated at 55": NOBODY,
            "GpuClockLow at 82.5": [gpu_of(0), gpu_of(1)],
            "GpuClockLowRepeated at 82.5": [gpu_of(0)],
            "GpuClockLowRepeated at 112": NOBODY,
        },
    )


# -- network ports


def port(name: str, values: str, host: str = "n0", device: str = "mlx5_0", more: str = "") -> dict[str, str]:
    inner = f'device="{device}",port="1",instance="{host}:9100"{more}'
    return {"series": f"node_infiniband_{name}{{{inner}}}", "values": values}


def test_ports_of_the_run_s_hosts(tmp_path: Path) -> None:
    bad = [{"run": "r42", "host": "n0", "device": device} for device in ("mlx5_0", "mlx5_2", "mlx5_4")]
    by_label = {"run": "r42", "host": "n1", "device": "mlx5_7"}
    given = [
        *node(150),
        *node(150, "n1", ranks=range(8, 16)),
        port("port_errors_received_total", then((5, 60), (6, 90))),
        port("symbol_error_total", steady(40, 150), device="mlx5_1"),
        port("state_id", then((4, 60), (1, 90)), device="mlx5_2"),
        port("state_id", steady(1, 150), device="mlx5_3"),
        port("rate_bytes_per_second", then((5e10, 60), (2.5e10, 90)), device="mlx5_4"),
        port("port_discards_transmitted_total", then((5, 60), (6, 90)), host="n9"),
        port(
            "link_downed_total", then((0, 60), (1, 90)), host="10.0.0.7", device="mlx5_7", more=',host="n1"'
        ),
    ]
    check(
        tmp_path,
        given,
        {
            "NicErrors at 59": NOBODY,
            "NicErrors at 62": [*bad, by_label],
            "NicErrors at 130": bad[1:],
        },
    )
