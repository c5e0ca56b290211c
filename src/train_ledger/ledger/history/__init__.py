"""How did the figures of a run develop, from its first step to its last?

Held in bins of steps, so that a picture of it costs the same whether the run is a minute old or a month.
"""

from __future__ import annotations

from train_ledger.ledger.history.fields import CURVES, GPU_STRIPS, STRIPS
from train_ledger.ledger.history.history import History, Mark
from train_ledger.ledger.history.kept import HistoryUnusableError, read_history, write_history
from train_ledger.ledger.history.pictures import Curve, CurvePart, Strip, curves, gpu_strips, strips

__all__ = [
    "CURVES",
    "GPU_STRIPS",
    "STRIPS",
    "Curve",
    "CurvePart",
    "History",
    "HistoryUnusableError",
    "Mark",
    "Strip",
    "curves",
    "gpu_strips",
    "read_history",
    "strips",
    "write_history",
]
