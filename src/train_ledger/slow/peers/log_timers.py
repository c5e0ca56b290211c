"""What does a log of all ranks tell, which knows only the slowest and the fastest of them?

Megatron's timers print the least and the most over the ranks: that somebody drags, and not who.
"""

from __future__ import annotations

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.peers.verdict import Who
from train_ledger.slow.table import StepTable

__all__ = ["of_log", "tells_spans"]

_NAMES = ("fwd", "bwd", "opt", "data_wait")
_UNTOLD = "a log that speaks for all ranks does not tell whose own work is longer"


def tells_spans(table: StepTable) -> bool:
    """Whether the least and the most over all ranks are told, as by whoever writes the log for all."""
    return any(table.tells(f"{name}_min_s") for name in _NAMES)


def of_log(table: StepTable, alerts: Alerts) -> Who:
    """How far the slowest rank is from the fastest, if that is told; never who it is."""
    spans = [_span(table, name, alerts) for name in _NAMES if table.tells(f"{name}_min_s")]
    far = [span for span in spans if span is not None]
    if not far:
        return Who("cannot_tell", _UNTOLD)
    name, ratio, share = max(far, key=lambda it: it[1])
    reason = (
        f"{name} takes the slowest rank {ratio:.2f} × as long as the fastest in {share:.0%} of the logged "
        "steps; which rank that is the timers' minimum and maximum do not say (--timing-log-option all does)"
    )
    return Who("cannot_tell", reason, steps=len(table.steps))


def _span(table: StepTable, name: str, alerts: Alerts) -> tuple[str, float, float] | None:
    steady = table.steady
    most, least = table.of(f"{name}_s")[:, steady], table.of(f"{name}_min_s")[:, steady]
    told = np.isfinite(most) & np.isfinite(least) & (least > 0)
    if not told.any():
        return None
    ratios = most[told] / least[told]
    return name, float(np.median(ratios)), float((ratios > 1 + alerts.outlier_effect).mean())
