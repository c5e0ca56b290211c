"""The driver is asked through nvidia-ml-py itself; only the library below it is a stand-in."""

from __future__ import annotations

import sys
import time

import pynvml
import pytest

from sources.hardware.fake_driver import LOST, NOT_SUPPORTED, FakeDriver, FakeGpu
from train_ledger.sources.hardware import WANTED
from train_ledger.sources.hardware.nvml import Nvml, NvmlUnusableError

T = 1_770_000_000.0
DEV = "DCGM_FI_DEV_"


def driver_of(patch: pytest.MonkeyPatch, *gpus: FakeGpu, absent: frozenset[str] = frozenset()) -> FakeDriver:
    driver = FakeDriver(list(gpus), absent=absent)
    driver.install(patch)
    return driver


def all_links() -> dict[int, int]:
    return {
        pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL: 0,
        pynvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL: 0,
        pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL: 7,
        pynvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL: 1,
    }


def test_names_and_units_are_those_of_dcgm_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu(fields={pynvml.NVML_FI_DEV_MEMORY_TEMP: 68, **all_links()})
    driver_of(monkeypatch, gpu)
    (reading,) = Nvml("n7").look(T)
    assert (reading.t, reading.host, reading.gpu, reading.uuid) == (T, "n7", 0, "GPU-0")
    assert (reading.pci, reading.by) == ("0000:3b:00", "nvml")
    assert reading.values == {
        f"{DEV}SM_CLOCK": 1755, f"{DEV}MEM_CLOCK": 2619, f"{DEV}MAX_SM_CLOCK": 1980,
        f"{DEV}GPU_TEMP": 61, f"{DEV}MEMORY_TEMP": 68, f"{DEV}POWER_USAGE": 412.3,
        f"{DEV}CLOCKS_EVENT_REASONS": 4, f"{DEV}GPU_UTIL": 97, f"{DEV}MEM_COPY_UTIL": 41,
        f"{DEV}FB_USED": 70_000, f"{DEV}FB_FREE": 10_000, f"{DEV}FB_RESERVED": 600,
        f"{DEV}ECC_SBE_VOL_TOTAL": 2, f"{DEV}ECC_DBE_VOL_TOTAL": 0,
        f"{DEV}CORRECTABLE_REMAPPED_ROWS": 1, f"{DEV}UNCORRECTABLE_REMAPPED_ROWS": 0,
        f"{DEV}ROW_REMAP_PENDING": 0, f"{DEV}ROW_REMAP_FAILURE": 0, f"{DEV}PCIE_REPLAY_COUNTER": 5,
        f"{DEV}PCIE_TX_THROUGHPUT": 900, f"{DEV}PCIE_RX_THROUGHPUT": 1200, f"{DEV}XID_ERRORS": 0,
        f"{DEV}NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 0, f"{DEV}NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": 0,
        f"{DEV}NVLINK_REPLAY_ERROR_COUNT_TOTAL": 7, f"{DEV}NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 1,
    }  # fmt: skip


def test_what_the_alerts_want_is_told_or_said_not_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    driver_of(monkeypatch, FakeGpu())
    (reading,) = Nvml("n7").look(T)
    assert set(WANTED) <= reading.values.keys() | set(reading.not_observed)
    assert "DCGM_FI_PROF_SM_ACTIVE" in reading.not_observed


def test_link_errors_of_hopper_are_added_up_over_its_links(monkeypatch: pytest.MonkeyPatch) -> None:
    links = {(pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, link): link for link in range(1, 4)}
    links[pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, 17] = 4
    driver_of(monkeypatch, FakeGpu(links=links))
    values = Nvml("n7").look(T)[0].values
    assert values[f"{DEV}NVLINK_REPLAY_ERROR_COUNT_TOTAL"] == 6
    assert values[f"{DEV}NVLINK_RECOVERY_ERROR_COUNT_TOTAL"] == 4
    assert f"{DEV}NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL" not in values


def test_traffic_is_a_rate_from_the_second_look_on(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu(fields={pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX: 1000})
    driver_of(monkeypatch, gpu)
    moments = iter([0.0, 10.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    nvml = Nvml("n7")
    assert "DCGM_FI_PROF_NVLINK_TX_BYTES" not in nvml.look(T)[0].values
    gpu.fields[pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX] = 3000
    assert nvml.look(T + 10)[0].values["DCGM_FI_PROF_NVLINK_TX_BYTES"] == 2000 * 1024 / 10


def test_a_card_without_ecc_and_remapping_says_so_and_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = FakeGpu(
        codes={"nvmlDeviceGetTotalEccErrors": NOT_SUPPORTED, "nvmlDeviceGetRemappedRows": NOT_SUPPORTED}
    )
    driver_of(monkeypatch, gpu)
    nvml = Nvml("n7")
    assert {f"{DEV}ECC_DBE_VOL_TOTAL", f"{DEV}ROW_REMAP_PENDING"} <= set(nvml.look(T)[0].not_observed)
    gpu.codes.clear()
    assert f"{DEV}ECC_DBE_VOL_TOTAL" not in nvml.look(T)[0].values


def test_what_fails_once_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu(codes={"nvmlDeviceGetPowerUsage": pynvml.NVML_ERROR_UNKNOWN})
    driver_of(monkeypatch, gpu)
    nvml = Nvml("n7")
    (reading,) = nvml.look(T)
    assert f"{DEV}POWER_USAGE" not in {*reading.values, *reading.not_observed}
    gpu.codes.clear()
    assert nvml.look(T)[0].values[f"{DEV}POWER_USAGE"] == 412.3


def test_a_gpu_that_is_lost_is_absent_and_named_while_the_others_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpus = [FakeGpu(uuid=f"GPU-{n}") for n in range(8)]
    driver_of(monkeypatch, *gpus)
    nvml = Nvml("n7")
    assert [it.gpu for it in nvml.look(T)] == list(range(8))
    gpus[3].codes["*"] = LOST
    readings = nvml.look(T)
    assert [it.gpu for it in readings] == [0, 1, 2, 4, 5, 6, 7, None]
    assert readings[-1].not_observed == ("GPU 3 (GPU-3): NVML says: GPU is lost",)


def test_a_gpu_that_was_lost_before_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [FakeGpu(), FakeGpu(uuid="GPU-1", codes={"nvmlDeviceGetHandleByIndex_v2": LOST})]
    driver_of(monkeypatch, *gpus)
    readings = Nvml("n7").look(T)
    assert readings[-1].not_observed == ("GPU 1: NVML says: GPU is lost",)


def test_the_driver_tells_xids(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = driver_of(monkeypatch, FakeGpu(), FakeGpu(uuid="GPU-1"))
    nvml = Nvml("n7")
    nvml.look(T)
    driver.xids = [(1, 31), (1, 94)]
    assert [it.values[f"{DEV}XID_ERRORS"] for it in nvml.look(T)] == [0, 94]
    assert [it.values[f"{DEV}XID_ERRORS"] for it in nvml.look(T)] == [0, 94]


def test_an_older_driver_has_no_new_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = frozenset(
        {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetMemoryInfo_v2", "nvmlEventSetCreate"}
    )
    driver_of(monkeypatch, FakeGpu(), absent=absent)
    (reading,) = Nvml("n7").look(T)
    assert reading.values[f"{DEV}CLOCKS_EVENT_REASONS"] == 4
    assert {f"{DEV}FB_USED", f"{DEV}XID_ERRORS"} <= set(reading.not_observed)


def test_a_driver_that_was_loaded_anew_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu()
    driver = driver_of(monkeypatch, gpu)
    nvml = Nvml("n7")
    nvml.look(T)
    gpu.codes["*"] = pynvml.NVML_ERROR_UNINITIALIZED
    with pytest.raises(NvmlUnusableError, match="Uninitialized"):
        nvml.look(T)
    gpu.codes.clear()
    assert len(nvml.look(T)) == 1
    assert driver.shut_down == 1
    nvml.close()
    assert driver.shut_down == 2


def test_no_driver_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    driver_of(monkeypatch, FakeGpu()).init_code = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    with pytest.raises(NvmlUnusableError, match="Driver Not Loaded"):
        Nvml("n7").look(T)


def test_no_gpu_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    driver_of(monkeypatch)
    with pytest.raises(NvmlUnusableError, match="no GPU"):
        Nvml("n7").look(T)


def test_without_the_package_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NvmlUnusableError, match="nvidia-ml-py is not installed"):
        Nvml("n7").look(T)


def test_every_name_of_nvml_that_is_used_exists() -> None:
    """The stand-in answers for the library below; the names in nvidia-ml-py itself must be there, too."""
    from train_ledger.sources.hardware import nvml_figures

    fields = [nvml_figures.MEMORY_TEMP[1], *(it for _, it in nvml_figures.TRAFFIC)]
    fields += [it for _, alternatives in nvml_figures.LINK_ERRORS for it in alternatives]
    assert [name for name in fields if not hasattr(pynvml, name)] == []
