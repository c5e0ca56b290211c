"""What does the interval between checkpoints cost, and what would a better one save?

Saving more often has a price of its own, δ each time, which is set against what is no longer done again.
"""

from __future__ import annotations

from dataclasses import dataclass

from train_ledger.ledger.costs.figures import Figures
from train_ledger.ledger.costs.interval import daly_s, ettr, waste, young_s

__all__ = ["SavingCost", "saving_cost"]

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class SavingCost:
    """The present interval beside Young's and Daly's.

    `waste_now` and `waste_young` are shares of all time, to the first order, with the recovery itself in
    both; `ettr_now` is the effective training time to be expected. `redo_saved_s` is how much less is done
    again on average after a failure at Young's interval (negative: more, where saves are too frequent now),
    and `net` is what is left of it a day when the other number of saves has been paid for.
    """

    now_s: float
    young_s: float
    daly_s: float
    waste_now: float
    waste_young: float
    ettr_now: float
    ettr_young: float
    redo_saved_s: float
    gpu_hours_per_failure: float
    gpu_hours_per_day: float
    cost_per_day: float
    more_saves_per_day: float
    net_gpu_hours_per_day: float
    net_cost_per_day: float


def saving_cost(figures: Figures) -> SavingCost | None:
    """None where no formula holds: a save costs nothing, or the run fails faster than it recovers."""
    delta_s, mtbi_s = figures["checkpoint"].value, figures["mtbi"].value
    now_s, gpus, price = figures["interval"].value, figures["world_size"].value, figures["price"].value
    best_s = young_s(delta_s, mtbi_s)
    recovery_s = sum(figures[part].value for part in ("detect", "dump", "decide", "restart", "load"))
    if delta_s <= 0 or recovery_s + min(now_s, best_s) / 2 >= mtbi_s:
        return None
    waste_now, waste_young = (waste(it, delta_s, mtbi_s, recovery_s) for it in (now_s, best_s))
    redo_saved_s = (now_s - best_s) / 2
    per_failure = redo_saved_s * gpus / 3600
    per_day = per_failure * _DAY_S / mtbi_s
    net = (waste_now - waste_young) * gpus * 24
    return SavingCost(
        now_s=now_s,
        young_s=best_s,
        daly_s=daly_s(delta_s, mtbi_s),
        waste_now=waste_now,
        waste_young=waste_young,
        ettr_now=ettr(mtbi_s, recovery_s, now_s, delta_s),
        ettr_young=ettr(mtbi_s, recovery_s, best_s, delta_s),
        redo_saved_s=redo_saved_s,
        gpu_hours_per_failure=per_failure,
        gpu_hours_per_day=per_day,
        cost_per_day=per_day * price,
        more_saves_per_day=_DAY_S / (best_s + delta_s) - _DAY_S / (now_s + delta_s),
        net_gpu_hours_per_day=net,
        net_cost_per_day=net * price,
    )
