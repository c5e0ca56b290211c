"""What dcgm-exporter serves, in every style it has, and what others serve beside it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.sources.hardware import xids_told
from train_ledger.sources.hardware.dcgm import read_page

T = 1_770_000_000.0
UUID = "GPU-5c1f0a52-0000-4000-8000-000000000003"


def sample(
    name: str, value: object, *, style: str = "new", gpu: int = 3, uuid: str = UUID, **more: str
) -> str:
    host = 'Hostname="n7"' if style == "old" else 'hostname="n7"'
    extra = "".join(f',{key}="{text}"' for key, text in more.items())
    return (
        f'DCGM_FI_{name}{{gpu="{gpu}",UUID="{uuid}",pci_bus_id="00000000:3B:00.0",device="nvidia{gpu}",'
        f'modelName="NVIDIA H100 80GB HBM3",{host}{extra}}} {value}'
    )


@pytest.mark.parametrize("style", ["old", "new"])
def test_both_spellings_of_the_host_label_read_alike(style: str) -> None:
    page = read_page(sample("DEV_SM_CLOCK", 1755, style=style), t=T)
    (reading,) = page.readings
    assert (reading.host, reading.gpu, reading.uuid, reading.pci) == ("n7", 3, UUID, "0000:3b:00")
    assert (reading.t, reading.by, reading.values) == (T, "dcgm", {"DCGM_FI_DEV_SM_CLOCK": 1755.0})


def test_the_node_that_was_asked_goes_before_the_label() -> None:
    text = sample("DEV_SM_CLOCK", 1755).replace('"n7"', '"localhost"')
    assert read_page(text, t=T, host="n7").readings[0].host == "n7"


def test_an_xid_as_value_and_as_label_are_the_same_xid() -> None:
    old = sample("DEV_XID_ERRORS", 79, style="old")
    new = sample("DEV_XID_ERRORS", 79, err_code="79", err_msg="GPU has fallen off the bus")
    newest = sample("DEV_XID_ERROR", 79, err_code="79", err_msg="")
    for text in (old, new, newest):
        (reading,) = read_page(text, t=T).readings
        assert (reading.values["DCGM_FI_DEV_XID_ERRORS"], xids_told(reading.values)) == (79.0, {79: 1.0})


def test_code_0_is_no_fault() -> None:
    (reading,) = read_page(sample("DEV_XID_ERRORS", 0, err_code="0", err_msg="No Error"), t=T).readings
    assert (reading.values, xids_told(reading.values)) == ({"DCGM_FI_DEV_XID_ERRORS": 0.0}, {})


def test_of_several_codes_of_one_gpu_none_is_lost() -> None:
    lines = [sample("DEV_XID_ERRORS", code, err_code=str(code)) for code in (0, 31, 74)]
    (reading,) = read_page("\n".join(lines), t=T).readings
    assert (reading.values["DCGM_FI_DEV_XID_ERRORS"], sorted(xids_told(reading.values))) == (74.0, [31, 74])


def test_of_several_codes_the_newest_is_the_last_one() -> None:
    lines = [
        sample("DEV_XID_ERRORS", 74, err_code="74") + " 1770000000500",
        sample("DEV_XID_ERRORS", 31, err_code="31") + " 1770000000100",
    ]
    assert read_page("\n".join(lines), t=T).readings[0].values["DCGM_FI_DEV_XID_ERRORS"] == 74.0


def test_counts_within_a_window_stand_by_their_code() -> None:
    lines = [
        sample("DEV_XID_ERRORS", 31),
        sample("DEV_XID_ERRORS", 31).replace(
            "DCGM_FI_DEV_XID_ERRORS{", 'DCGM_EXP_XID_ERRORS_COUNT{xid="31",'
        ),
        sample("X", 4).replace("DCGM_FI_X{", 'DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event="hw_thermal",'),
    ]
    lines[1] = lines[1].rpartition(" ")[0] + " 5"
    (reading,) = read_page("\n".join(lines), t=T).readings
    assert xids_told(reading.values) == {31: 5.0}
    assert reading.values['DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event="hw_thermal"}'] == 4.0


@pytest.mark.parametrize(
    ("served", "known"),
    [
        ("DEV_CLOCK_THROTTLE_REASONS", "DEV_CLOCKS_EVENT_REASONS"),
        ("DEV_ROW_REMAP_FAILED", "DEV_ROW_REMAP_FAILURE"),
        ("DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "DEV_UNCORRECTABLE_REMAPPED_ROWS"),
        ("DEV_NVLINK_REPLAY_ERROR_TOTAL", "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
        ("DEV_BOARD_POWER_WATTS", "DEV_POWER_USAGE"),
        ("DEV_MEMORY_TEMP_CELSIUS", "DEV_MEMORY_TEMP"),
        ("PROF_TENSOR_UTIL_RATIO", "PROF_PIPE_TENSOR_ACTIVE"),
    ],
)
def test_fields_of_both_versions_have_one_name(served: str, known: str) -> None:
    for name in (served, known):
        assert read_page(sample(name, 8), t=T).readings[0].values == {f"DCGM_FI_{known}": 8.0}


@pytest.mark.parametrize(
    "blank",
    [
        "NaN",
        "140737488355328.000000",
        "140737488355330",
        "9223372036854775794",
        "2147483634",
        "+Inf",
        "9.2234e18",
    ],
)
def test_what_dcgm_stands_for_no_value_is_not_observed(blank: str) -> None:
    text = f"{sample('DEV_MEMORY_TEMP', blank)}\n{sample('DEV_GPU_TEMP', 61)}"
    (reading,) = read_page(text, t=T).readings
    assert reading.values == {"DCGM_FI_DEV_GPU_TEMP": 61.0}
    assert reading.not_observed == ("DCGM_FI_DEV_MEMORY_TEMP",)


def test_large_values_that_are_none_of_the_blanks_stay() -> None:
    energy = sample("DEV_TOTAL_ENERGY_CONSUMPTION", 140_737_488_355_400)
    assert (
        read_page(energy, t=T).readings[0].values["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
        == 140_737_488_355_400
    )


def test_a_part_of_a_gpu_is_not_the_gpu() -> None:
    lines = [
        sample("DEV_FB_USED", 9000, GPU_I_PROFILE="1g.10gb", GPU_I_ID="7"),
        sample("DEV_FB_USED", 4000, GPU_I_PROFILE="2g.20gb", GPU_I_ID="3"),
        sample("DEV_POWER_USAGE", 100, GPU_I_PROFILE="2g.20gb", GPU_I_ID="3"),
        sample("DEV_POWER_USAGE", 300),
    ]
    (reading,) = read_page("\n".join(lines), t=T).readings
    assert (reading.gpu, reading.values) == (3, {"DCGM_FI_DEV_POWER_USAGE": 300.0})
    assert reading.not_observed == ("DCGM_FI_DEV_FB_USED",)


def test_links_of_one_gpu_are_added_up() -> None:
    lines = [sample("DEV_NVLINK_REPLAY_ERROR_TOTAL", n, nvlink=str(n)) for n in (1, 2, 3)]
    assert read_page("\n".join(lines), t=T).readings[0].values == {
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": 6.0
    }


def test_eight_gpus_come_in_order_and_others_metrics_are_passed_over() -> None:
    lines = [sample("DEV_GPU_TEMP", 50 + n, gpu=n, uuid=f"GPU-{n}") for n in (7, 0, 3)]
    lines += ["# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).", "node_load1 0.5", "DCGMI_other 1"]
    lines += ['DCGM_FI_DEV_NVSWITCH_TEMP_CELSIUS{nvswitch="0",hostname="n7"} 40']
    page = read_page("\n".join(lines), t=T)
    assert ([it.gpu for it in page.readings], page.bad_lines) == ([0, 3, 7], {})


def test_bad_lines_are_counted_and_spoil_themselves_alone() -> None:
    lines = [
        sample("DEV_GPU_TEMP", "hot"),
        "DCGM_FI_DEV_GPU_TEMP 61",
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID=broken} 61',
        'DCGM_FI_DEV_GPU_TEMP{hostname="n7"} 61',
        sample("DEV_GPU_TEMP", 61, modelName2="x" * 20_000),
        sample("DEV_SM_CLOCK", 1755),
    ]
    page = read_page("\n".join(lines), t=T)
    assert page.readings[0].values == {"DCGM_FI_DEV_SM_CLOCK": 1755.0}
    assert page.bad_lines == {"bad_number": 1, "not_a_sample": 2, "no_gpu": 1, "too_long": 1}


def test_a_label_may_hold_quotes_and_braces() -> None:
    text = sample("DEV_GPU_TEMP", 61, pod='a\\"}{\\\\b')
    assert read_page(text, t=T).readings[0].values == {"DCGM_FI_DEV_GPU_TEMP": 61.0}


def test_a_hostile_page_is_bounded() -> None:
    many = "\n".join(sample("DEV_GPU_TEMP", 1, gpu=n, uuid=f"GPU-{n}") for n in range(2000))
    wide = "\n".join(sample(f"DEV_X{n}", 1) for n in range(2000))
    braces = sample("DEV_GPU_TEMP", 1).replace("n7", "}" * 8000) + " x"
    began = time.process_time()
    pages = [read_page(text, t=T) for text in (many, wide, "\n".join([braces] * 200), "\0" * 1000)]
    assert time.process_time() - began < 20
    assert [len(it.readings) for it in pages] == [256, 1, 0, 0]
    assert pages[0].bad_lines["too_many"] == 1744
    assert len(pages[1].readings[0].values) == 400


@given(st.text(alphabet='DCGM_FI{}=",\\ 0179.-\n#aé\0', max_size=200))
def test_no_text_raises(text: str) -> None:
    read_page(f"DCGM_FI_DEV_GPU_TEMP{text}\n{text}", t=T)
