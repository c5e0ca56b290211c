"""Which fields does dcgm-exporter have to read?

Its own list leaves out ECC, NVLink errors and pending row remaps, so that alerts on them never fire. It ends
at a name that it does not know, and then exports nothing at all: only names that releases 3 and 4 know stand
here, the others as comments that say for which release they are. From 4.6 on DCGM has other names for many of
these and keeps the old ones, with their old units, for whoever asks by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["COUNTERS", "Counter", "counters_csv"]

Group = Literal["state", "activity and traffic", "errors", "memory"]


@dataclass(frozen=True, slots=True)
class Counter:
    """One row: the field by DCGM's name, Prometheus' type of it, and what it is; no comma may be in that.

    `since` is where it has to be switched on by hand, and why.
    """

    field: str
    kind: Literal["gauge", "counter"]
    help: str
    group: Group
    since: str = ""


def _rows(group: Group, *rows: tuple[str, Literal["gauge", "counter"], str]) -> tuple[Counter, ...]:
    return tuple(Counter(field, kind, help, group) for field, kind, help in rows)


_HOPPER = "for H100 and newer, whose driver no longer fills the fields above; dcgm-exporter 4.0 or newer"
_NEWER = "dcgm-exporter 4.0 or newer"
_TOTALS = "counts that Prometheus can take differences of; dcgm-exporter 4.8.3 or newer"

COUNTERS: tuple[Counter, ...] = (
    *_rows(
        "state",
        ("DCGM_FI_DEV_GPU_TEMP", "gauge", "Temperature of the GPU in degrees Celsius."),
        ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Temperature of its memory in degrees Celsius."),
        ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw in watts."),
        ("DCGM_FI_DEV_SM_CLOCK", "gauge", "Clock of the streaming multiprocessors in MHz."),
        ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Clock of the memory in MHz."),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", "Bit mask of what holds the clocks down."),
    ),
    *_rows(
        "activity and traffic",
        ("DCGM_FI_DEV_GPU_UTIL", "gauge", "Share of time with any kernel in percent; 100 in a hang too."),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Share of time with the compute engine active."),
        ("DCGM_FI_PROF_SM_ACTIVE", "gauge", "Share of cycles with a warp on the multiprocessors."),
        ("DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "Resident warps as a share of the most that fit."),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Share of cycles with the tensor pipe active."),
        ("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Share of cycles with data going to or from memory."),
        ("DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", "Bytes per second sent over NVLink."),
        ("DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", "Bytes per second received over NVLink."),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "Bytes per second sent over PCIe."),
        ("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "Bytes per second received over PCIe."),
    ),
    *_rows(
        "errors",
        ("DCGM_FI_DEV_XID_ERRORS", "gauge", "Code of the last XID; never taken back."),
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Single-bit ECC errors since the driver was loaded."),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Double-bit ECC errors since the driver was loaded."),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "1 where a row remap waits for a reset of the GPU."),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "1 where no row was left to remap to."),
        ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped after uncorrectable errors."),
        ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped after correctable errors."),
        ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter", "NVLink CRC errors of flow control."),
        ("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "counter", "NVLink CRC errors of data."),
        ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", "NVLink transfers sent again."),
        ("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter", "NVLink links brought up again."),
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe transfers sent again."),
        ("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "XIDs within the exporter's window by code."),
        ("DCGM_EXP_CLOCK_EVENTS_COUNT", "gauge", "Clock events within the exporter's window by reason."),
    ),
    Counter("DCGM_FI_DEV_NVLINK_ERROR_DL_CRC", "counter", "NVLink CRC errors.", "errors", _HOPPER),
    Counter("DCGM_FI_DEV_NVLINK_ERROR_DL_REPLAY", "counter", "NVLink replays.", "errors", _HOPPER),
    Counter("DCGM_FI_DEV_NVLINK_ERROR_DL_RECOVERY", "counter", "NVLink recoveries.", "errors", _HOPPER),
    Counter("DCGM_EXP_XID_ERRORS_TOTAL", "counter", "XIDs by code.", "errors", _TOTALS),
    Counter("DCGM_EXP_CLOCK_EVENTS_TOTAL", "counter", "Clock events by reason.", "errors", _TOTALS),
    *_rows(
        "memory",
        ("DCGM_FI_DEV_FB_USED", "gauge", "Memory in use by the driver's count in MiB."),
        ("DCGM_FI_DEV_FB_FREE", "gauge", "Memory that is free by the driver's count in MiB."),
    ),
    Counter("DCGM_FI_DEV_FB_RESERVED", "gauge", "Memory that the driver keeps in MiB.", "memory", _NEWER),
)

_HEAD = """\
# Made by train-ledger: what its rules and panels ask of dcgm-exporter (--collectors FILE).
# A name that the exporter does not know ends it, or leaves it without any figure; it then says "could not
# find DCGM field". To releases 3 that refuse it DCGM_FI_DEV_CLOCKS_EVENT_REASONS is
# DCGM_FI_DEV_CLOCK_THROTTLE_REASONS; those before 3.3.6-3.4.2 may not know the two DCGM_EXP_ either.
# DCGM_FI_PROF_ is missing while Nsight profiles the same GPU: that is expected.
# field, type, help
"""


def counters_csv() -> str:
    """The file for dcgm-exporter's --collectors."""
    lines, group, since = [_HEAD], "", ""
    for counter in COUNTERS:
        if counter.group != group:
            group = counter.group
            lines.append(f"\n# {group}\n")
        if counter.since not in ("", since):
            lines.append(f"# {counter.since}:\n")
        since = counter.since
        lines.append(f"{'# ' if since else ''}{counter.field}, {counter.kind}, {counter.help}\n")
    return "".join(lines)
