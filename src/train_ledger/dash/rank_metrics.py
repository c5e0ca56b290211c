"""How do the ranks' own lines read as Prometheus metrics?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from train_ledger.dash.conditions import last_loss_finite
from train_ledger.dash.field_metrics import RANK_FIELDS, field_help
from train_ledger.dash.metric_text import family_of_ranks, head_of
from train_ledger.ledger.state import RankState

__all__ = ["Member", "rank_metrics"]


@dataclass(frozen=True, slots=True)
class Member:
    """A rank of the current attempt, and its label string."""

    state: RankState
    labels: str


_FIELD_HEADS = {field.name: head_of(field.metric, field.kind, field_help(field)) for field in RANK_FIELDS}


_STALE_HEAD = head_of(
    "train_rank_stale",
    "gauge",
    "1 where nothing was heard of a rank for so long that its gauges are left out.",
)


def _step(rank: RankState) -> float | None:
    return None if rank.step is None else float(rank.step)


def _is_finite(rank: RankState) -> float | None:
    return None if rank.step is None else float(last_loss_finite(rank))


_RANK_FACTS = (
    ("train_step", "gauge", "Last completed step.", _step),
    (
        "train_last_step_completed_timestamp_seconds",
        "gauge",
        "When the last step was completed.",
        lambda rank: rank.step_t,
    ),
    (
        "train_last_log_timestamp_seconds",
        "gauge",
        "Time of the last line of any kind.",
        lambda rank: rank.heard_t,
    ),
    ("train_loss_is_finite", "gauge", "0 where the loss of the last step was no finite number.", _is_finite),
    (
        "train_loss_nonfinite_total",
        "counter",
        "Steps of this attempt with a loss that was no finite number.",
        lambda rank: float(rank.nonfinite_total),
    ),
)


def rank_metrics(members: list[Member], silent: frozenset[int]) -> Iterator[str]:
    """A gauge of a rank that fell silent would go on for ever; what is counted, and when, stays true."""
    labelled = [member.labels for member in members]
    values = [member.state.values for member in members]
    gauges = [{} if member.state.rank in silent else member.state.values for member in members]
    for field in RANK_FIELDS:
        # A counter is born at 0, or its first increase could not be seen.
        is_counter = field.kind == "counter"
        default = 0.0 if is_counter else None
        numbers = [told.get(field.name, default) for told in (values if is_counter else gauges)]
        yield family_of_ranks(_FIELD_HEADS[field.name], field.metric, labelled, numbers)
    for name, kind, help, read in _RANK_FACTS:
        facts = [read(member.state) for member in members]
        yield family_of_ranks(head_of(name, kind, help), name, labelled, facts)
    stale: list[float | None] = [float(member.state.rank in silent) for member in members]
    yield family_of_ranks(_STALE_HEAD, "train_rank_stale", labelled, stale)
