"""Does the hardware under the run hold?"""

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
from train_ledger.dash.rule import Firing, Level, Rule
from train_ledger.dash.rules.gpus.places import on_ranks
from train_ledger.dash.rules.gpus.xid_recordings import DCGM_AGE, KERNEL_AGE
from train_ledger.dash.rules.words import QUIET_AFTER_THE_END, place_of_run, place_of_run_promql
from train_ledger.ledger.hardware.records import GpuState
from train_ledger.ledger.state import RunState
from train_ledger.ledger.xids import xid
from train_ledger.render import harmless

__all__ = ["HARDWARE_RULES"]

_GPU_LABELS = ("run", "rank", "host", "gpu")
_XID_LABELS = (*_GPU_LABELS, "xid")


def _of_gpu(
    state: RunState, gpu: GpuState, value: float, what: str, *, before: str = "", **more: str
) -> Firing:
    """`before` stands before the place, and `what` after it."""
    labels = {"run": state.run, "rank": str(gpu.ranks[0]), "host": gpu.host}
    number = {} if gpu.gpu is None else {"gpu": str(gpu.gpu)}
    place = f"{gpu.host} gpu {'?' if gpu.gpu is None else gpu.gpu} (rank {gpu.ranks[0]})"
    text = f"{state.run}: {before}{place}: {what}{place_of_run(state)}"
    return Firing({**labels, **number, **more}, value, harmless(text, longest=500))


def _xids(state: RunState, alerts: Alerts, level: Level) -> list[Firing]:
    if state.finished:
        return []
    found = {}
    for gpu, told in recent_xids(state, alerts, level):
        row = xid(told.code)
        what = f"{row.meaning}; do: {_advice(gpu) or row.action}"
        what += f"; {told.count} times" if told.count > 1 else ""
        found[gpu.host, gpu.ranks, told.code] = _of_gpu(
            state, gpu, told.count, what, before=f"XID {told.code} on ", xid=str(told.code)
        )
    return list(found.values())


def _advice(gpu: GpuState) -> str:
    """What the driver itself says that the GPU needs (XID 154), where it says so."""
    said = [it.text for it in gpu.xids if it.code == _RECOVERY]
    match = _NEEDED.search(said[-1]) if said else None
    return "" if match is None else f"{match[1].strip().lower()}, as the driver says"


def _xid_error(state: RunState, alerts: Alerts) -> list[Firing]:
    return _xids(state, alerts, "page")


def _xid_recorded(state: RunState, alerts: Alerts) -> list[Firing]:
    return _xids(state, alerts, "record")


def _ecc_dbe(state: RunState, alerts: Alerts) -> list[Firing]:
    if state.finished:
        return []
    return [_of_gpu(state, gpu, 1.0, f"{why}; {_TAKE_OUT}") for gpu, why in failing_memory(state, alerts)]


def _ecc_sbe(state: RunState, alerts: Alerts) -> list[Firing]:
    hours = alerts.ecc_sbe_window_s / 3600
    return [
        _of_gpu(state, gpu, gpu.sbe_grown, f"{gpu.sbe_grown:.0f} corrected memory errors in {hours:.0f} h")
        for gpu in _unless_over(state, sbe_growing(state, alerts))
    ]


def _gpu_lost(state: RunState, alerts: Alerts) -> list[Firing]:
    return [
        _of_gpu(state, gpu, state.t - (gpu.seen_t or state.t), f"{_GONE}; {_REBOOT}")
        for gpu in _unless_over(state, lost_gpus(state, alerts))
    ]


def _clock_low(state: RunState, alerts: Alerts) -> list[Firing]:
    return [
        _of_gpu(state, gpu, 1.0, f"low clocks: {gpu.low_why}")
        for gpu in _unless_over(state, state.gpus)
        if gpu.ranks and is_low(gpu, state, alerts)
    ]


def _clock_low_repeated(state: RunState, alerts: Alerts) -> list[Firing]:
    return [
        _of_gpu(state, gpu, times, f"low clocks for the {times}th time: {gpu.low_why}; {_COOLING}")
        for gpu in _unless_over(state, state.gpus)
        if gpu.ranks and is_low(gpu, state, alerts)
        if (times := low_times(gpu, state, alerts)) >= alerts.clock_low_count
    ]


def _nvlink(state: RunState, _: Alerts) -> list[Firing]:
    firings = []
    for gpu in _unless_over(state, links_with_errors(state)):
        names = ", ".join(f"{_link_name(name)} +{gpu.links_grown[name]:.0f}" for name in gpu.links_grown)
        firings.append(_of_gpu(state, gpu, sum(gpu.links_grown.values()), f"NVLink errors: {names}"))
    return firings


def _nic(state: RunState, _: Alerts) -> list[Firing]:
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


_RECOVERY = 154
_NEEDED = re.compile(r"changed from .{0,80}? to 0x[0-9A-Fa-f]+ \(((?!None)[^()]{1,60})\)")

_TAKE_OUT = "do: take the host out, reset the GPU"
_REBOOT = "do: take the host out and reboot it, cold if needed"
_GONE = "it is no longer seen while the other GPUs of the host are"
_COOLING = "do: take the host out, see to its cooling and power"

_PLACE = "{{ $labels.host }} gpu {{ $labels.gpu }} (rank {{ $labels.rank }})"
_MEANING = (
    '{{ with printf "train_xid_info{code=%q}" $labels.xid | query }}'
    ': {{ . | first | label "meaning" }}; do: {{ . | first | label "action" }}{{ end }}'
)
_WHERE = place_of_run_promql()

_PAGING = f"""{KERNEL_AGE}{{level="page"}} < $xid_window_s
  or {DCGM_AGE}{{xid=~"$xids_paging"}} < $xid_window_s"""
_EVER_PAGED = f"""({KERNEL_AGE}{{level="page"}} or {DCGM_AGE}{{xid=~"$xids_paging"}})"""
_RECORDED = f"""{KERNEL_AGE}{{level="record"}} < $xid_window_s
  or {DCGM_AGE}{{xid!~"$xids_paging|$xids_ignored"}} < $xid_window_s"""
_LOST = (
    "(gpu:known:bool unless on (uuid) last_over_time(gpu:seen:bool[$gpu_lost]) and on (node) gpu:seen:bool)"
)
_EPISODES = "gpu:clock_low_episodes:count"
_REPEATED = f"""(
  gpu:clock_low:bool == 1
  and {_EPISODES} - ({_EPISODES} offset $clock_low_window or 0 * {_EPISODES}) >= $clock_low_count
)"""

HARDWARE_RULES: tuple[Rule, ...] = (
    Rule(
        name="GpuXidError",
        level="page",
        promql=f"max by (run, rank, host, gpu, xid) (\n  {_PAGING}\n){QUIET_AFTER_THE_END}",
        summary="{{ $labels.run }}: XID {{ $labels.xid }} on " + _PLACE + _MEANING + _WHERE,
        runbook="gpuxiderror",
        check=_xid_error,
        keep_firing_for_s="keep_firing_s",
        labels=_XID_LABELS,
        group="hardware",
    ),
    Rule(
        name="GpuXidRecorded",
        level="record",
        promql=f"max by (run, rank, host, gpu, xid) (\n  {_RECORDED}\n)\n"
        f"unless max by (run, rank, host, gpu, xid) (\n  {_PAGING}\n){QUIET_AFTER_THE_END}",
        summary="{{ $labels.run }}: XID {{ $labels.xid }} on " + _PLACE + _MEANING,
        runbook="gpuxidrecorded",
        check=_xid_recorded,
        labels=_XID_LABELS,
        group="hardware",
    ),
    Rule(
        name="GpuEccDbe",
        level="page",
        promql=on_ranks("gpu:ecc_uncorrected:bad") + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: "
        + _PLACE
        + f": an uncorrected memory error, or a row of its memory that waits to be remapped; {_TAKE_OUT}"
        + _WHERE,
        runbook="gpueccdbe",
        check=_ecc_dbe,
        keep_firing_for_s="keep_firing_s",
        labels=_GPU_LABELS,
        group="hardware",
    ),
    Rule(
        name="GpuLost",
        level="page",
        promql=f"({on_ranks(_LOST)})\nunless on (run, host, gpu) {_EVER_PAGED}{QUIET_AFTER_THE_END}",
        summary="{{ $labels.run }}: " + _PLACE + f": {_GONE}; {_REBOOT}" + _WHERE,
        runbook="gpulost",
        check=_gpu_lost,
        keep_firing_for_s="keep_firing_s",
        labels=_GPU_LABELS,
        group="hardware",
    ),
    Rule(
        name="GpuClockLowRepeated",
        level="page",
        promql=on_ranks(_REPEATED) + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: "
        + _PLACE
        + f": low clocks for the third time or more within $clock_low_window; {_COOLING}"
        + _WHERE,
        runbook="gpuclocklowrepeated",
        check=_clock_low_repeated,
        keep_firing_for_s="keep_firing_s",
        labels=_GPU_LABELS,
        group="hardware",
    ),
    Rule(
        name="GpuClockLow",
        level="record",
        promql=on_ranks("(gpu:clock_low:bool == 1)") + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: "
        + _PLACE
        + ": a clock-event reason that is trouble, or an SM clock under $clock_low_fraction of its usual one",
        runbook="gpuclocklow",
        check=_clock_low,
        labels=_GPU_LABELS,
        group="hardware",
    ),
    Rule(
        name="GpuEccSbeGrowing",
        level="record",
        promql=on_ranks("gpu:ecc_corrected:grown") + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: "
        + _PLACE
        + ": {{ $value }} corrected memory errors within $ecc_sbe_window",
        runbook="gpueccsbegrowing",
        check=_ecc_sbe,
        labels=_GPU_LABELS,
        group="hardware",
    ),
    Rule(
        name="NvlinkErrors",
        level="record",
        promql=on_ranks("gpu:nvlink_errors:grown") + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: " + _PLACE + ": NVLink error counters grew within $link_window",
        runbook="nvlinkerrors",
        check=_nvlink,
        labels=_GPU_LABELS,
        group="hardware",
    ),
    Rule(
        name="NicErrors",
        level="record",
        promql="run_host_port:infiniband:bad" + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: {{ $labels.device }} of {{ $labels.host }}: errors, discards, or a link "
        "that is down or slower than usual",
        runbook="nicerrors",
        check=_nic,
        labels=("run", "host", "device"),
        group="hardware",
    ),
)
