"""How much of the ranks' unequal work comes from unequal sequences?

Of what a rank was given – its tokens, or the sum of the squared lengths where that is told – the one that
goes best with its work is taken, in the same line or in the one before: GPUs are told a line later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from train_ledger.slow.peers.ratios import log_ratios
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Floats, Ints

__all__ = ["Explained", "by_lengths"]

_FEWEST_CELLS = 40
_VARIES_FROM = 0.005
_GOES_WITH_FROM = 0.3
_STEEPEST = 2.2
"""Attention's work grows with the square."""


@dataclass(frozen=True, slots=True)
class Explained:
    """What of the log-ratios comes from the tokens; `correlation` over all ranks and steps."""

    ratios: Floats
    correlation: float
    slope: float


def by_lengths(table: StepTable, ratios: Floats, groups: Ints) -> Explained | None:
    """The part of the ranks' log-ratios that their tokens explain; None where they are equal or untold."""
    best: Explained | None = None
    for name in ("tokens", "tokens_squared"):
        if not table.tells(name):
            continue
        if not _varies(table.of(name)):
            continue
        given = log_ratios(table.of(name), groups)
        for lag in (0, 1):
            found = _fit(_shifted(given, lag), ratios)
            if found is not None and (best is None or found.correlation > best.correlation):
                best = found
    return best if best is not None and best.correlation >= _GOES_WITH_FROM else None


def _varies(given: Floats) -> bool:
    """Whether the ranks were ever given different lengths."""
    told = given[:, np.isfinite(given).any(axis=0)]
    least, most = np.nanmin(told, axis=0), np.nanmax(told, axis=0)
    return bool(((most - least) > _VARIES_FROM * most).any())


def _shifted(given: Floats, lag: int) -> Floats:
    if not lag:
        return given
    shifted = np.full_like(given, np.nan)
    shifted[:, lag:] = given[:, :-lag]
    return shifted


def _fit(given: Floats, ratios: Floats) -> Explained | None:
    both = np.isfinite(given) & np.isfinite(ratios)
    if both.sum() < _FEWEST_CELLS:
        return None
    # A rank that is off all the time says nothing of what its tokens do.
    own = np.array(
        [np.median(row[told]) if told.any() else 0.0 for row, told in zip(ratios, both, strict=True)]
    )
    x, y = given[both], (ratios - own[:, None])[both]
    if x.std() == 0 or y.std() == 0:
        return None
    y = np.clip(y, *np.quantile(y, (0.01, 0.99)))
    slope = float(np.clip((x * y).sum() / (x * x).sum(), 0.0, _STEEPEST))
    correlation = float(np.corrcoef(x, y)[0, 1])
    return Explained(np.nan_to_num(slope * given), correlation, slope)
