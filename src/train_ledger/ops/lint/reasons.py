"""Why may a metric be missing, and what makes it come?"""

from __future__ import annotations

from train_ledger.fields import FIELDS

__all__ = ["COMES_WITH_AN_INCIDENT", "how_to_get"]

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

_FIELD_OF = {field.metric: field for field in FIELDS.values()}
_OTHERS = {
    "train_mfu_baseline": "write mfu_baseline into run.json once a hundred steady steps are known",
    "train_ckpt_due_timestamp_seconds": "comes after the fourth checkpoint of a run whose steps go on",
    "train_ckpt_last_success_timestamp_seconds": "comes with the first checkpoint that is told",
    "train_ckpt_duration_s": "comes with the first checkpoint that is told",
    "train_step_time_seconds_p50": "comes with the third step of an attempt",
    "train_process_up": "comes while ranks of the run have not ended",
    "train_rank_info": "comes with the run_start event of each rank: train_ledger.start() writes it",
}
_STARTS = (
    ("DCGM_FI_PROF_", "needs dcgm-exporter with DCGM's profiling module and this field in its counters file"),
    ("DCGM_", "needs dcgm-exporter with this field in its counters file (`train-ledger deploy` writes one), "
     "or `train-ledger export --record-hardware` on a node with the NVIDIA driver"),
    ("node_infiniband_", "needs node_exporter with its infiniband collector on the nodes of the run"),
    ("train_exporter_", "is exported by `train-ledger export` on each node"),
)  # fmt: skip


def how_to_get(metric: str) -> str:
    """What to do for this metric to be exported, in words.

    >>> how_to_get("train_data_wait_s")
    'no rank writes data_wait_s (taken: phase data or monitor.data(), on the rank)'
    """
    if metric in _OTHERS:
        return _OTHERS[metric]
    if field := _FIELD_OF.get(metric):
        return f"no rank writes {field.name} (taken: {field.taken_at})"
    for start, how in _STARTS:
        if metric.startswith(start):
            return how
    return "no exporter of this version has it: a slip in the name, or of another version"
