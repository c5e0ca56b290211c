"""Which questions to NVML give the fields of dcgm-exporter's table, in the same units?

Functions and fields as nvml.h describes them. What needs the profiling unit (PROF_* but for NVLink's traffic)
NVML does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

__all__ = ["LINK_ERRORS", "NEVER", "QUESTIONS", "TRAFFIC", "field_values", "link_errors"]

Figures: TypeAlias = Mapping[str, float]
Question: TypeAlias = tuple[tuple[str, ...], Callable[[Any, Any], Iterable[float]]]
"""Names of fields, and what asks NVML (its module, a GPU's handle) for as many figures."""

_MIB = 1 << 20
_ALL_LINKS = 0xFFFFFFFF
_OF_TYPE = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

NEVER = frozenset({2, 3, 4, 13, 25, 26})
"""Codes that another question does not change: NVML_ERROR_INVALID_ARGUMENT, _NOT_SUPPORTED, _NO_PERMISSION,
_FUNCTION_NOT_FOUND (an older driver), _ARGUMENT_VERSION_MISMATCH, _DEPRECATED."""


def _dev(*names: str) -> tuple[str, ...]:
    return tuple(f"DCGM_FI_DEV_{name}" for name in names)


def _utilization(nvml: Any, gpu: Any) -> Iterable[float]:
    rates = nvml.nvmlDeviceGetUtilizationRates(gpu)
    return rates.gpu, rates.memory


def _memory(nvml: Any, gpu: Any) -> Iterable[float]:
    memory = nvml.nvmlDeviceGetMemoryInfo(gpu, version=nvml.nvmlMemory_v2)
    return memory.used // _MIB, memory.free // _MIB, memory.reserved // _MIB


def _clock_reasons(nvml: Any, gpu: Any) -> Iterable[float]:
    try:
        return (nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu),)
    except nvml.NVMLError_FunctionNotFound:  # drivers before 535 have it under its old name
        return (nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),)


QUESTIONS: tuple[Question, ...] = (
    (_dev("SM_CLOCK"), lambda nvml, gpu: (nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),)),
    (_dev("MEM_CLOCK"), lambda nvml, gpu: (nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM),)),
    (_dev("MAX_SM_CLOCK"), lambda nvml, gpu: (nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM),)),
    (_dev("GPU_TEMP"), lambda nvml, gpu: (nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),)),
    (_dev("POWER_USAGE"), lambda nvml, gpu: (nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,)),
    (_dev("CLOCKS_EVENT_REASONS"), _clock_reasons),
    (_dev("GPU_UTIL", "MEM_COPY_UTIL"), _utilization),
    (_dev("FB_USED", "FB_FREE", "FB_RESERVED"), _memory),
    (
        _dev("ECC_SBE_VOL_TOTAL"),
        lambda nvml, gpu: (
            nvml.nvmlDeviceGetTotalEccErrors(
                gpu, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC
            ),
        ),
    ),
    (
        _dev("ECC_DBE_VOL_TOTAL"),
        lambda nvml, gpu: (
            nvml.nvmlDeviceGetTotalEccErrors(
                gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
            ),
        ),
    ),
    (
        _dev(
            "CORRECTABLE_REMAPPED_ROWS",
            "UNCORRECTABLE_REMAPPED_ROWS",
            "ROW_REMAP_PENDING",
            "ROW_REMAP_FAILURE",
        ),
        lambda nvml, gpu: nvml.nvmlDeviceGetRemappedRows(gpu),
    ),
    (_dev("PCIE_REPLAY_COUNTER"), lambda nvml, gpu: (nvml.nvmlDeviceGetPcieReplayCounter(gpu),)),
    (
        _dev("PCIE_TX_THROUGHPUT"),
        lambda nvml, gpu: (nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_TX_BYTES),),
    ),
    (
        _dev("PCIE_RX_THROUGHPUT"),
        lambda nvml, gpu: (nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_RX_BYTES),),
    ),
)
"""One call each. Clocks in MHz, temperature in °C, power in W, memory in MiB, PCIe traffic in kB/s."""

MEMORY_TEMP = ("DCGM_FI_DEV_MEMORY_TEMP", "NVML_FI_DEV_MEMORY_TEMP")

TRAFFIC: tuple[tuple[str, str], ...] = (
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", "NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX"),
    ("DCGM_FI_PROF_NVLINK_RX_BYTES", "NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX"),
)
"""What a GPU sent and received over all its links in KiB, protocol included; a rate is made of it."""

LINK_ERRORS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        ("NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVML_FI_DEV_NVLINK_ERROR_DL_CRC"),
    ),
    (
        "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        ("NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",),
    ),
    (
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        ("NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY"),
    ),
    (
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        (
            "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
            "NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY",
            "NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS",
        ),
    ),
)
"""Each count of link errors, and the fields that tell it, by generation of the hardware: first the total of
all links, then what each link tells by itself (Hopper; Blackwell)."""


def field_values(
    nvml: Any, gpu: Any, wanted: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, float | None]]:
    """Each name with the value of its field, of all links together where it is a link's; None for no value.

    Raises NVMLError where NVML answers none of them.
    """
    pairs = list(wanted)
    ids = [(getattr(nvml, field), _ALL_LINKS if "THROUGHPUT" in field else 0) for _, field in pairs]
    answers = nvml.nvmlDeviceGetFieldValues(gpu, ids)
    for (name, _), answer in zip(pairs, answers, strict=True):
        yield name, _value(answer)


def link_errors(nvml: Any, gpu: Any, fields: tuple[str, ...]) -> float | None:
    """The sum of what the links tell, by the first of these fields that any link tells, else None."""
    total, *of_one_link = fields
    (answer,) = nvml.nvmlDeviceGetFieldValues(gpu, [getattr(nvml, total)])
    if (value := _value(answer)) is not None:
        return value
    for field in of_one_link:
        links = range(nvml.NVML_NVLINK_MAX_LINKS)
        answers = nvml.nvmlDeviceGetFieldValues(gpu, [(getattr(nvml, field), link) for link in links])
        told = [value for it in answers if (value := _value(it)) is not None]
        if told:
            return sum(told)
    return None


def _value(answer: Any) -> float | None:
    if answer.nvmlReturn != 0 or not 0 <= answer.valueType < len(_OF_TYPE):
        return None
    return float(getattr(answer.value, _OF_TYPE[answer.valueType]))
