"""Which hardware under a run is in trouble, and what is said of it?

The checks of the embedded judge; their twins in PromQL stand in `hardware`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from train_ledger.config import Alerts
from train_ledger.dash.hardware_conditions import (
    bad_ports,
    failing_memory,
    is_low,
    links_with_errors,
    lost_gpus,
    low_times,
    recent_xids,
    sbe_growing,
)
from train_ledger.dash.rule import Firing, Level
from train_ledger.dash.rules.words import place_of_run
from train_ledger.ledger.hardware.records import GpuState
from train_ledger.ledger.state import RunState
from train_ledger.ledger.xids import xid
from train_ledger.render import harmless

__all__ = [
    "COOLING",
    "GONE",
    "REBOOT",
    "TAKE_OUT",
    "clock_low",
    "clock_low_repeated",
    "ecc_dbe",
    "ecc_sbe",
    "gpu_lost",
    "nic",
    "nvlink",
    "xid_error",
    "xid_recorded",
]

_RECOVERY = 154
_NEEDED = re.compile(r"changed from .{0,80}? to 0x[0-9A-Fa-f]+ \(((?!None)[^()]{1,60})\)")

TAKE_OUT = "do: take the host out, reset the GPU"
REBOOT = "do: take the host out and reboot it, cold if needed"
GONE = "it is no longer seen while the other GPUs of the host are"
COOLING = "do: take the host out, see to its cooling and power"


def _of_gpu(
    state: RunState, gpu: GpuState, value: float, what: str, *, before: str = "", **more: str
) -> Firing:
    """`before` stands before the place and where the run is, and `what` after them."""
    labels = {"run": state.run, "rank": str(gpu.ranks[0]), "host": gpu.host}
    number = {} if gpu.gpu is None else {"gpu": str(gpu.gpu)}
    place = f"{gpu.host} gpu {'?' if gpu.gpu is None else gpu.gpu} (rank {gpu.ranks[0]})"
    text = f"{state.run}: {before}{place}{place_of_run(state)}: {what}"
    return Firing({**labels, **number, **more}, value, harmless(text, longest=500))


def _xids(state: RunState, alerts: Alerts, level: Level) -> list[Firing]:
    if state.finished:
        return []
    found = {}
    for gpu, told in recent_xids(state, alerts, level):
        row = xid(told.code)
        often = f" ({told.count} times)" if told.count > 1 else ""
        what = f"{row.meaning}{often}; do: {_advice(gpu) or row.action}"
        found[gpu.host, gpu.ranks, told.code] = _of_gpu(
            state, gpu, told.count, what, before=f"XID {told.code} on ", xid=str(told.code)
        )
    return list(found.values())


def _advice(gpu: GpuState) -> str:
    """What the driver itself says that the GPU needs (XID 154), where it says so."""
    said = [it.text for it in gpu.xids if it.code == _RECOVERY]
    match = _NEEDED.search(said[-1]) if said else None
    return "" if match is None else f"{match[1].strip().lower()}, as the driver says"


def xid_error(state: RunState, alerts: Alerts) -> list[Firing]:
    return _xids(state, alerts, "page")


def xid_recorded(state: RunState, alerts: Alerts) -> list[Firing]:
    return _xids(state, alerts, "record")


def ecc_dbe(state: RunState, alerts: Alerts) -> list[Firing]:
    if state.finished:
        return []
    return [_of_gpu(state, gpu, 1.0, f"{why}; {TAKE_OUT}") for gpu, why in failing_memory(state, alerts)]


def ecc_sbe(state: RunState, alerts: Alerts) -> list[Firing]:
    hours = alerts.ecc_sbe_window_s / 3600
    return [
        _of_gpu(state, gpu, gpu.sbe_grown, f"{gpu.sbe_grown:.0f} corrected memory errors in {hours:.0f} h")
        for gpu in _unless_over(state, sbe_growing(state, alerts))
    ]


def gpu_lost(state: RunState, alerts: Alerts) -> list[Firing]:
    return [
        _of_gpu(state, gpu, state.t - (gpu.seen_t or state.t), f"{GONE}; {REBOOT}")
        for gpu in _unless_over(state, lost_gpus(state, alerts))
    ]


def clock_low(state: RunState, alerts: Alerts) -> list[Firing]:
    return [
        _of_gpu(state, gpu, 1.0, f"low clocks: {gpu.low_why}")
        for gpu in _unless_over(state, state.gpus)
        if gpu.ranks and is_low(gpu, state, alerts)
    ]


def clock_low_repeated(state: RunState, alerts: Alerts) -> list[Firing]:
    return [
        _of_gpu(state, gpu, times, f"low clocks, {times} times within a day: {gpu.low_why}; {COOLING}")
        for gpu in _unless_over(state, state.gpus)
        if gpu.ranks and is_low(gpu, state, alerts)
        if (times := low_times(gpu, state, alerts)) >= alerts.clock_low_count
    ]


def nvlink(state: RunState, _: Alerts) -> list[Firing]:
    firings = []
    for gpu in _unless_over(state, links_with_errors(state)):
        names = ", ".join(f"{_link_name(name)} +{gpu.links_grown[name]:.0f}" for name in gpu.links_grown)
        firings.append(_of_gpu(state, gpu, sum(gpu.links_grown.values()), f"NVLink errors: {names}"))
    return firings


def nic(state: RunState, _: Alerts) -> list[Firing]:
    firings = {}
    for port, why in () if state.finished else bad_ports(state):
        labels = {"run": state.run, "host": port.host, "device": port.device}
        text = harmless(f"{state.run}: {port.device} of {port.host}: {why}", longest=500)
        firings[port.host, port.device] = Firing(labels, 1.0, text)
    return list(firings.values())


def _unless_over(state: RunState, gpus: Iterable[GpuState]) -> Iterable[GpuState]:
    return () if state.finished else gpus


def _link_name(field: str) -> str:
    return field.removeprefix("DCGM_FI_DEV_NVLINK_").removesuffix("_COUNT_TOTAL").lower().replace("_", " ")
