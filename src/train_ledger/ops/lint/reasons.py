"""Why may a metric be missing, and what makes it come?"""

from __future__ import annotations

from collections.abc import Container

from train_ledger.fields import FIELDS
from train_ledger.ops.lint.alive import Lack

__all__ = ["COMES_WITH_AN_INCIDENT", "comes_of_itself", "how_to_get", "how_to_mend"]

_OF_CARD = frozenset({"host", "gpu", "uuid"})

COMES_WITH_AN_INCIDENT: dict[str, frozenset[str] | None] = {
    "ALERTS": None,
    "ALERTS_FOR_STATE": None,
    "train_process_gone_timestamp_seconds": frozenset({"run", "rank"}),
    "train_xid_total": _OF_CARD | {"code", "level"},
    "train_xid_info": frozenset({"code", "meaning", "action"}),
    "DCGM_EXP_XID_ERRORS_COUNT": None,
}
"""Metrics that are rightly absent as long as nothing happened, with their labels where they are known."""

_REST_ON = {
    "train_ckpt_due_timestamp_seconds": "train_ckpt_duration_s",
    "train_ckpt_duration_ratio": "train_ckpt_duration_s",
    "train_data_wait_fraction": "train_data_wait_s",
    "train_fragmented_alloc_retries": "train_mem_inactive_split",
    "train_grad_norm_spike_ratio": "train_grad_norm",
    "train_mfu_sustained_fraction": "train_mfu_baseline",
    "train_rank_outlier_ratio": "train_compute_s",
    "train_step_time_recent_seconds": "train_step",
    "train_step_time_usual_seconds": "train_step",
}
"""What an exporter works out, and adds when there is something to say, by what it needs for it."""

_FIELD_OF = {field.metric: field for field in FIELDS.values()}
_OTHERS = {
    "train_mfu_baseline": "write mfu_baseline into run.json once a hundred steady steps are known",
    "train_ckpt_last_success_timestamp_seconds": "comes with the first checkpoint that is told",
    "train_ckpt_duration_s": "comes with the first checkpoint that is told",
    "train_step_time_seconds_p50": "comes with the third step of an attempt",
    "train_process_up": "comes while ranks of the run have not ended",
    "train_span_seconds": "comes with the spans of torchtitan's structured logs",
    "train_step": "comes with the first step of the run",
    "train_rank_info": "comes with the run_start event of each rank: train_ledger.start() writes it",
}
_STARTS = (
    ("DCGM_FI_PROF_", "needs dcgm-exporter with DCGM's profiling module and this field in its counters file"),
    ("DCGM_", "needs dcgm-exporter with this field in its counters file (`train-ledger deploy` writes one), "
     "or `train-ledger export --record-hardware` on a node with the NVIDIA driver"),
    ("node_infiniband_", "needs node_exporter with its infiniband collector on the nodes of the run"),
    ("train_exporter_", "is exported by `train-ledger export` on each node"),
)  # fmt: skip


def comes_of_itself(exported: Container[str]) -> dict[str, frozenset[str] | None]:
    """Metrics that are rightly absent now, going by what is exported."""
    worked_out = dict.fromkeys(name for name, source in _REST_ON.items() if source in exported)
    return {**COMES_WITH_AN_INCIDENT, **worked_out}


def how_to_mend(lack: Lack) -> str:
    """What to do where a metric, or one of its labels, is missing, in words."""
    if lack.label in ("gpu", "uuid") and "rank" in lack.metric:
        return "the ranks told no GPU; train_ledger.start() writes gpu and uuid of each that has one"
    return f"match it by labels that it has, not by {lack.label}" if lack.label else how_to_get(lack.metric)


def how_to_get(metric: str) -> str:
    """What to do for this metric to be exported, in words.

    >>> how_to_get("train_data_wait_s")
    'no rank writes data_wait_s (taken: phase data or monitor.data(), on the rank)'
    """
    if metric in _OTHERS:
        return _OTHERS[metric]
    if source := _REST_ON.get(metric):
        return how_to_get(source)
    if field := _FIELD_OF.get(metric):
        return f"no rank writes {field.name} (taken: {field.taken_at})"
    for start, how in _STARTS:
        if metric.startswith(start):
            return how
    return "no exporter of this version has it: a slip in the name, or of another version"
