"""Do steps take longer because they do more?"""

from __future__ import annotations

import numpy as np

from train_ledger.slow.suspects.view import View, over_ranks, typical
from train_ledger.slow.table import StepTable

__all__ = ["of_more_work"]

_AS_MUCH = 0.9


def of_more_work(view: View) -> str:
    """The code "none" where steps hold as many tokens more as they take longer, else "unknown"."""
    now, before = _tokens(view.now), None if view.before is None else _tokens(view.before)
    if now is None or before is None or not view.before_s:
        return "unknown"
    more, longer = now / before - 1, view.now_s / view.before_s - 1
    return "none" if more >= _AS_MUCH * longer else "unknown"


def _tokens(table: StepTable) -> float | None:
    if not table.tells("tokens"):
        return None
    found = typical(over_ranks(np.nansum, table.of("tokens")[:, table.steady]))
    return found if found > 0 else None
