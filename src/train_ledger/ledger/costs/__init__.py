"""What do a run's time, its hangs and its checkpoints cost, and what would be worth mending first?"""

from __future__ import annotations

from train_ledger.ledger.costs.costs import Costs, MfuPoint, RunCost, costs
from train_ledger.ledger.costs.figures import FIGURES, Figure, FigureError, Origin, assumed, given
from train_ledger.ledger.costs.interval import daly_s, ettr, mttf_s, waste, young_s
from train_ledger.ledger.costs.measured import measured
from train_ledger.ledger.costs.priorities import Priority
from train_ledger.ledger.costs.recovery import HangCost
from train_ledger.ledger.costs.saving import SavingCost

__all__ = [
    "FIGURES",
    "Costs",
    "Figure",
    "FigureError",
    "HangCost",
    "MfuPoint",
    "Origin",
    "Priority",
    "RunCost",
    "SavingCost",
    "assumed",
    "costs",
    "daly_s",
    "ettr",
    "given",
    "measured",
    "mttf_s",
    "waste",
    "young_s",
]
