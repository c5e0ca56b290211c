"""By which names, in which units, are the figures of a GPU known here?

By those of dcgm-exporter's default table, whoever told them; DCGM renamed many of its fields, and a
recording of either version reads alike. Names and meanings: dcgm_fields.h of NVIDIA/DCGM, and the tables in
etc/ of NVIDIA/dcgm-exporter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

__all__ = [
    "PROFILING",
    "RENAMED",
    "SMALLEST_BLANK",
    "WANTED",
    "XID",
    "XID_COUNT",
    "is_blank",
    "labelled",
    "xids_told",
]

XID = "DCGM_FI_DEV_XID_ERRORS"
"""The code that DCGM saw last, 0 for none."""

XID_COUNT = "DCGM_EXP_XID_ERRORS_COUNT"
"""How often dcgm-exporter saw a code within its window (five minutes), one figure a code: see `labelled`."""

RENAMED: Mapping[str, str] = {
    f"DCGM_FI_{new}": f"DCGM_FI_{known}"
    for new, known in (
        ("DEV_CLOCK_THROTTLE_REASONS", "DEV_CLOCKS_EVENT_REASONS"),
        ("DEV_MEMORY_TEMP_CELSIUS", "DEV_MEMORY_TEMP"),
        ("DEV_GPU_TEMP_CELSIUS", "DEV_GPU_TEMP"),
        ("DEV_BOARD_POWER_WATTS", "DEV_POWER_USAGE"),
        ("DEV_BOARD_POWER_RAW_WATTS", "DEV_POWER_USAGE_INSTANT"),
        ("DEV_GPU_UTIL_RATIO", "DEV_GPU_UTIL"),
        ("DEV_PCIE_REPLAY_TOTAL", "DEV_PCIE_REPLAY_COUNTER"),
        ("DEV_XID_ERROR", "DEV_XID_ERRORS"),
        ("DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "DEV_UNCORRECTABLE_REMAPPED_ROWS"),
        ("DEV_ROW_REMAP_CORRECTABLE_TOTAL", "DEV_CORRECTABLE_REMAPPED_ROWS"),
        ("DEV_ROW_REMAP_FAILED", "DEV_ROW_REMAP_FAILURE"),
        ("DEV_PAGE_RETIRED_SBE_TOTAL", "DEV_RETIRED_SBE"),
        ("DEV_PAGE_RETIRED_DBE_TOTAL", "DEV_RETIRED_DBE"),
        ("DEV_PAGE_RETIRED_PENDING", "DEV_RETIRED_PENDING"),
        ("DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
        ("DEV_NVLINK_CRC_DATA_ERROR_TOTAL", "DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
        ("DEV_NVLINK_REPLAY_ERROR_TOTAL", "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
        ("DEV_NVLINK_RECOVERY_ERROR_TOTAL", "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
        ("DEV_NVLINK_THROUGHPUT_TOTAL", "DEV_NVLINK_BANDWIDTH_TOTAL"),
        ("PROF_GR_ENGINE_UTIL_RATIO", "PROF_GR_ENGINE_ACTIVE"),
        ("PROF_SM_UTIL_RATIO", "PROF_SM_ACTIVE"),
        ("PROF_SM_OCCUPANCY_RATIO", "PROF_SM_OCCUPANCY"),
        ("PROF_TENSOR_UTIL_RATIO", "PROF_PIPE_TENSOR_ACTIVE"),
        ("PROF_DRAM_UTIL_RATIO", "PROF_DRAM_ACTIVE"),
        ("PROF_FP64_UTIL_RATIO", "PROF_PIPE_FP64_ACTIVE"),
        ("PROF_FP32_UTIL_RATIO", "PROF_PIPE_FP32_ACTIVE"),
        ("PROF_FP16_UTIL_RATIO", "PROF_PIPE_FP16_ACTIVE"),
    )
}
"""What DCGM calls a field in other versions → what it is called here."""

_STATE = (
    "SM_CLOCK",
    "MEM_CLOCK",
    "MEMORY_TEMP",
    "GPU_TEMP",
    "POWER_USAGE",
    "CLOCKS_EVENT_REASONS",
    "GPU_UTIL",
)
_MEMORY = ("FB_USED", "FB_FREE", "FB_RESERVED")
_ERRORS = (
    "XID_ERRORS", "ECC_SBE_VOL_TOTAL", "ECC_DBE_VOL_TOTAL", "ROW_REMAP_PENDING", "ROW_REMAP_FAILURE",
    "CORRECTABLE_REMAPPED_ROWS", "UNCORRECTABLE_REMAPPED_ROWS", "PCIE_REPLAY_COUNTER",
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
)  # fmt: skip
PROFILING: tuple[str, ...] = tuple(
    f"DCGM_FI_PROF_{name}"
    for name in (
        "GR_ENGINE_ACTIVE", "SM_ACTIVE", "SM_OCCUPANCY", "PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE",
        "PCIE_TX_BYTES", "PCIE_RX_BYTES", "NVLINK_TX_BYTES", "NVLINK_RX_BYTES",
    )
)  # fmt: skip
"""What the profiling unit alone tells; a profiler (nsys) that took it leaves gaps, which are no fault."""

WANTED: tuple[str, ...] = (*(f"DCGM_FI_DEV_{name}" for name in (*_STATE, *_MEMORY, *_ERRORS)), *PROFILING)
"""What the alerts and the drawings are made of: state, memory, errors, activity and traffic."""

_INT32_BLANK, _FP64_BLANK, _INT64_BLANK = 0x7FFFFFF0, float(1 << 47), float(0x7FFFFFFFFFFFFFF0)
SMALLEST_BLANK = float(_INT32_BLANK)
_KINDS_OF_BLANK = 4
"""Not set, not found, not supported, not permitted: the blank value and the three after it."""

_SERIES = re.compile(r'([A-Za-z_]\w*)\{([A-Za-z_]\w*)="([^"\\]*)"\}\Z', re.ASCII)
_CODE = re.compile(r"\d{1,6}\Z", re.ASCII)


def is_blank(value: float) -> bool:
    """Whether DCGM stands a number for "there is no value" (dcgm_structs.h: DCGM_INT32_BLANK and its like).

    >>> is_blank(140737488355330.0), is_blank(9.223372036854775794e18), is_blank(61.0), is_blank(1.4e14)
    (True, True, False, False)
    """
    if not math.isfinite(value) or value >= _INT64_BLANK:
        return True
    return any(0 <= value - blank < _KINDS_OF_BLANK for blank in (_INT32_BLANK, _FP64_BLANK))


def labelled(field: str, label: str, value: str) -> str:
    """The name of one figure of a field that has several, as Prometheus writes it.

    >>> labelled("DCGM_EXP_XID_ERRORS_COUNT", "xid", "79")
    'DCGM_EXP_XID_ERRORS_COUNT{xid="79"}'
    """
    return f'{field}{{{label}="{value}"}}'


def xids_told(values: Mapping[str, float]) -> dict[int, float]:
    """The XIDs that a reading tells: each code, and how often DCGM's window has it (1: at least once).

    Both are states, not news: the same code stands in every reading for as long as DCGM remembers it.

    >>> xids_told({"DCGM_FI_DEV_XID_ERRORS": 79.0, 'DCGM_EXP_XID_ERRORS_COUNT{xid="31"}': 4.0})
    {31: 4.0, 79: 1.0}
    """
    told: dict[int, float] = {}
    for name, value in values.items():
        match = _SERIES.match(name) if name.startswith((XID, XID_COUNT)) else None
        if match and value > 0 and _CODE.match(match[3]) and int(match[3]):
            code = int(match[3])
            told[code] = max(told.get(code, 0.0), value if match[1] == XID_COUNT else 1.0)
    last = values.get(XID, 0.0)
    if last > 0:
        told.setdefault(int(last), 1.0)
    return told
