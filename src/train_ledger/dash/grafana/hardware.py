"""Which card, link or port is not well?"""

from __future__ import annotations

from train_ledger.dash.grafana.panel import RUN, Line, Mark, Panel, Row, of_gpus, of_ports

__all__ = ["HARDWARE"]

_CARD = "{{host}} gpu {{gpu}}"
_REASONS = (
    ("software, temperature", 0x20),
    ("hardware, temperature", 0x40),
    ("hardware, power brake", 0x80),
    ("hardware slowdown", 0x08),
)
_OF_KERNEL = f"train_xid_total and on (instance) train_rank_info{{{RUN}}}"
"""Each exporter tells of the GPUs of its own run alone."""

_GREW = "(max_over_time({0}[1h]) - min_over_time({0}[1h]))"


def _card(field: str, says: str = "", right: bool = False, value: str = "{0}") -> Line:
    """A line a card."""
    legend = f"{_CARD}, {says}" if says else _CARD
    return _of_gpus(field, legend, value, right)


def _column(field: str, name: str, grew: bool = False) -> Line:
    """A column of a table, which has one row a card."""
    return _of_gpus(field, name, _GREW if grew else "{0}")


def _of_gpus(field: str, legend: str, value: str, right: bool = False) -> Line:
    name = f"DCGM_FI_{field}"
    return Line(of_gpus(name, value), legend, right, brief=f"of_gpus({value.format(name)})")


def _of_ports(metric: str, says: str) -> Line:
    legend = f"{{{{host}}}} {{{{device}}}}/{{{{port}}}}, {says}"
    return Line(of_ports(metric), legend, brief=f"of_ports(increase(node_infiniband_{metric}[1h]))")


_CLOCKS = Panel(
    "SM clock",
    "lines",
    "rotmhz",
    (
        _card("DEV_SM_CLOCK"),
        _card("DEV_MEM_CLOCK", "memory", right=True),
        Line(
            f"$clock_low_fraction * max ({of_gpus('DCGM_FI_DEV_SM_CLOCK', 'max_over_time({}[1d])')})",
            "low, by the run's highest of a day",
            brief="$clock_low_fraction * max (of_gpus(max_over_time(DCGM_FI_DEV_SM_CLOCK[1d])))",
        ),
    ),
    "Close to the card's own highest. What is usual differs by model, so the alert compares a card with "
    "its own past.",
    alerts=("GpuClockLow", "GpuClockLowRepeated"),
)
_THROTTLED = Panel(
    "Clocks held down by",
    "lines",
    "none",
    tuple(
        _card("DEV_CLOCKS_EVENT_REASONS", says, value=f"(floor({{0}} / {bit}) % 2)") for says, bit in _REASONS
    ),
    "0. The cap of power alone is usual under full load and is left out.",
    marks=(Mark(1.0, "red"),),
    alerts=("GpuClockLow",),
)
_HEAT = Panel(
    "Temperature",
    "lines",
    "celsius",
    (_card("DEV_GPU_TEMP"), _card("DEV_MEMORY_TEMP", "memory")),
    "Memory runs hot before the clock falls.",
    alerts=("GpuClockLow",),
)
_POWER = Panel(
    "Power",
    "lines",
    "watt",
    (_card("DEV_POWER_USAGE"),),
    "Close to the limit while it trains; a card far below its neighbours does not work.",
)
_TENSOR = Panel(
    "Tensor cores active",
    "lines",
    "percentunit",
    (
        _card("PROF_PIPE_TENSOR_ACTIVE"),
        Line(f"avg by (run) (train_mfu{{{RUN}}}) / 100", "MFU"),
    ),
    "Goes with MFU; a card far below the others has a problem. Gaps while Nsight runs are expected.",
)
_ACTIVITY = Panel(
    "Activity",
    "lines",
    "percentunit",
    (
        _card("PROF_GR_ENGINE_ACTIVE", "engine"),
        _card("PROF_SM_ACTIVE", "SM"),
        _card("PROF_DRAM_ACTIVE", "memory"),
    ),
    "Engine says 1 in a hang, too: it is no sign of progress.",
)
_XIDS = Panel(
    "XIDs of the kernel log",
    "bars",
    "none",
    (
        Line(f"max by (host, gpu, code, level) ({_OF_KERNEL})", f"{_CARD}, XID {{{{code}}}} ({{{{level}}}})"),
        _card("DEV_XID_ERRORS", "last one by DCGM", right=True),
    ),
    "None. The kernel log counts each; DCGM keeps the last code alone and never takes it back.",
    alerts=("GpuXidError", "GpuXidRecorded"),
)
_ERRORS = Panel(
    "Errors of each card",
    "table",
    "none",
    (
        _column("DEV_XID_ERRORS", "last XID"),
        _column("DEV_ECC_DBE_VOL_TOTAL", "double-bit ECC"),
        _column("DEV_ECC_SBE_VOL_TOTAL", "single-bit ECC in 1 h", grew=True),
        _column("DEV_ROW_REMAP_PENDING", "row remap pending"),
        _column("DEV_ROW_REMAP_FAILURE", "row remap failed"),
        _column("DEV_UNCORRECTABLE_REMAPPED_ROWS", "rows remapped"),
        _column("DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLink CRC flit in 1 h", grew=True),
        _column("DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "NVLink CRC data in 1 h", grew=True),
        _column("DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVLink replays in 1 h", grew=True),
        _column("DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "NVLink recoveries in 1 h", grew=True),
        _column("DEV_PCIE_REPLAY_COUNTER", "PCIe replays in 1 h", grew=True),
    ),
    "All 0, but for single-bit ECC and rows once remapped.",
    marks=(Mark(1.0, "red"),),
    alerts=("GpuXidError", "GpuEccDbe", "GpuEccSbeGrowing", "NvlinkErrors", "GpuLost"),
    width=16,
)
_NVLINK = Panel(
    "NVLink traffic",
    "lines",
    "Bps",
    (_card("PROF_NVLINK_TX_BYTES", "sent"), _card("PROF_NVLINK_RX_BYTES", "received")),
    "The same on all cards of a node: one that sends less waits, or its link does.",
    alerts=("NvlinkErrors",),
)
_PCIE = Panel(
    "PCIe traffic",
    "lines",
    "Bps",
    (_card("PROF_PCIE_TX_BYTES", "sent"), _card("PROF_PCIE_RX_BYTES", "received")),
    "The same on all cards of a node.",
)
_FRAMEBUFFER = Panel(
    "Memory by the driver",
    "lines",
    "decmbytes",
    (_card("DEV_FB_USED", "used"), _card("DEV_FB_FREE", "free")),
    "More than the ranks' own figure: the context and NCCL's buffers are in it.",
)
_NIC = Panel(
    "Network ports, errors in the last hour",
    "lines",
    "none",
    tuple(
        _of_ports(metric, says)
        for metric, says in (
            ("port_errors_received_total", "errors received"),
            ("port_discards_transmitted_total", "discards sent"),
            ("link_downed_total", "link down"),
            ("symbol_error_total", "symbol errors"),
            ("link_error_recovery_total", "link recoveries"),
        )
    ),
    "0. A poor link makes a straggler that no GPU figure shows.",
    marks=(Mark(1.0, "red"),),
    alerts=("NicErrors",),
)

_MEANINGS = Panel(
    "What the XIDs mean",
    "table",
    "none",
    (
        Line(
            f"max by (host, gpu, code, level) ({_OF_KERNEL})\n"
            "* on (code) group_left (meaning, action)"
            " topk by (code) (1, max by (code, meaning, action) (train_xid_info))",
            "count",
        ),
    ),
    "What each code stands for, and what is done about it.",
    alerts=("GpuXidError", "GpuXidRecorded"),
    width=16,
)

HARDWARE = Row(
    "The hardware, by host and GPU",
    (
        _CLOCKS,
        _THROTTLED,
        _HEAT,
        _POWER,
        _TENSOR,
        _ACTIVITY,
        _ERRORS,
        _XIDS,
        _MEANINGS,
        _NIC,
        _NVLINK,
        _PCIE,
        _FRAMEBUFFER,
    ),
)
