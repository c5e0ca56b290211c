"""Whose metric is a field of the signal lines, a rank's or the run's, and what is said of it?"""

from __future__ import annotations

from train_ledger.fields import FIELDS, Field

__all__ = ["RANK_FIELDS", "RUN_FIELDS", "field_help"]

RUN_FIELDS = ("restart_total", "ckpt_failed_total", "ckpt_duration_s", "effective_fraction", "mfu_baseline")
"""Fields that a launcher may write into a signal line though they are the run's."""

RANK_FIELDS = tuple(field for name, field in FIELDS.items() if name not in RUN_FIELDS)


def field_help(field: Field) -> str:
    unit = f", in {field.unit}" if field.unit else ""
    return f"{field.name}{unit}; taken: {field.taken_at}. Abnormal: {field.abnormal}."
