"""What does one hang cost, with an alert and a runbook and without?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from train_ledger.ledger.accounts.records import PARTS
from train_ledger.ledger.costs.figures import Figures

__all__ = ["HangCost", "hang_cost"]

_DAY_S = 86_400.0
_MONTH_S = 30 * _DAY_S


@dataclass(frozen=True, slots=True)
class HangCost:
    """Seconds of each part of one recovery, from the last step to the step once reached.

    `with_alert` and `without` differ in what is noticed and decided alone; `in_run` is how this run's own
    went (medians; None where a part was not seen, {} where nothing was). GPU-hours and cost are of the
    difference between the two; there is none a month where the run fails faster than it can recover.
    """

    without: Mapping[str, float]
    with_alert: Mapping[str, float]
    saved_s: float
    saved_gpu_hours: float
    saved_cost: float
    failures_per_day: float
    saved_cost_a_month: float | None
    in_run: Mapping[str, float | None] = field(default_factory=dict)


def hang_cost(figures: Figures, in_run: Mapping[str, float | None] | None = None) -> HangCost:
    """What an alert and a runbook save in one hang, and in a month of hangs at the given rate."""
    known = {part: figures[part].value for part in PARTS}
    without = {
        **known,
        "detect": figures["detect_without"].value,
        "decide": figures["decide_without"].value,
    }
    saved_s = sum(without.values()) - sum(known.values())
    gpu_hours = saved_s * figures["world_size"].value / 3600
    cost = gpu_hours * figures["price"].value
    mtbi_s = figures["mtbi"].value
    holds = mtbi_s > sum(known.values())
    return HangCost(
        without=without,
        with_alert=known,
        saved_s=saved_s,
        saved_gpu_hours=gpu_hours,
        saved_cost=cost,
        failures_per_day=_DAY_S / mtbi_s,
        saved_cost_a_month=cost * _MONTH_S / mtbi_s if holds else None,
        in_run=in_run or {},
    )
