"""Does the hardware under the run hold?"""

from __future__ import annotations

from train_ledger.dash.rule import Rule
from train_ledger.dash.rules import hardware_checks as checks
from train_ledger.dash.rules.gpus.places import on_ranks
from train_ledger.dash.rules.gpus.xid_recordings import DCGM_AGE, KERNEL_AGE
from train_ledger.dash.rules.hardware_checks import COOLING, GONE, REBOOT, TAKE_OUT
from train_ledger.dash.rules.words import QUIET_AFTER_THE_END, place_of_run_promql

__all__ = ["HARDWARE_RULES"]

_GPU_LABELS = ("run", "rank", "host", "gpu")
_XID_LABELS = (*_GPU_LABELS, "xid")

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
_NOT_REPLACED = f"({_LOST} unless on (host, node, gpu) last_over_time(gpu:seen:bool[$gpu_lost]))"
"""By its number alone, another card in the same place is the one that took its place."""
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
        summary="{{ $labels.run }}: XID {{ $labels.xid }} on " + _PLACE + _WHERE + _MEANING,
        runbook="gpuxiderror",
        check=checks.xid_error,
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
        check=checks.xid_recorded,
        labels=_XID_LABELS,
        group="hardware",
    ),
    Rule(
        name="GpuEccDbe",
        level="page",
        promql=on_ranks("gpu:ecc_uncorrected:bad") + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: "
        + _PLACE
        + _WHERE
        + f": an uncorrected memory error, or a row of its memory that waits to be remapped; {TAKE_OUT}",
        runbook="gpueccdbe",
        check=checks.ecc_dbe,
        keep_firing_for_s="keep_firing_s",
        labels=_GPU_LABELS,
        group="hardware",
    ),
    Rule(
        name="GpuLost",
        level="page",
        promql=f"({on_ranks(_LOST, _NOT_REPLACED)})\nunless on (run, host, gpu) {_EVER_PAGED}"
        + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: " + _PLACE + _WHERE + f": {GONE}; {REBOOT}",
        runbook="gpulost",
        check=checks.gpu_lost,
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
        + _WHERE
        + f": low clocks $clock_low_count times or more within $clock_low_window; {COOLING}",
        runbook="gpuclocklowrepeated",
        check=checks.clock_low_repeated,
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
        check=checks.clock_low,
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
        check=checks.ecc_sbe,
        labels=_GPU_LABELS,
        group="hardware",
    ),
    Rule(
        name="NvlinkErrors",
        level="record",
        promql=on_ranks("gpu:nvlink_errors:grown") + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: " + _PLACE + ": NVLink error counters grew within $link_window",
        runbook="nvlinkerrors",
        check=checks.nvlink,
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
        check=checks.nic,
        labels=("run", "host", "device"),
        group="hardware",
    ),
)
