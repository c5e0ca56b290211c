"""How much longer is a rank in one of its spans than its peers are?

In synchronous training all spans of a step together take all ranks equally long: whoever drags is longer in
one of them, and shorter in that in which the others wait – where it is they that are alike.
"""

from __future__ import annotations

import numpy as np

from train_ledger.slow.peers.ratios import FEWEST, others_median
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Floats, Ints

__all__ = ["span_excess"]

_OWN_PHASES = ("fwd_s", "opt_s")


def span_excess(table: StepTable, groups: Ints) -> Floats | None:
    """Seconds beyond the peers' median in the span that is longest beyond it; None where no span is told."""
    names = [name for name in table.values if name.startswith("span_") or name in _OWN_PHASES]
    names = [name for name in names if table.tells(name)]
    if not any(name.startswith("span_") for name in names):
        return None
    found = np.zeros(table.shape)
    for name in names:
        found = np.fmax(found, _beyond(table.of(name), groups))
    return found


def _beyond(seconds: Floats, groups: Ints) -> Floats:
    found = np.full(seconds.shape, np.nan)
    for group in np.unique(groups[groups >= 0]):
        members = np.flatnonzero(groups == group)
        if len(members) >= FEWEST:
            found[members] = seconds[members] - others_median(seconds[members])
    return found
