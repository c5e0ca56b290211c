"""Do ranks take turns in being slow, by their garbage collection or by the length of their sequences?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.peers.measured import Measured
from train_ledger.slow.peers.ratios import others_median
from train_ledger.slow.table.step_table import Floats

__all__ = ["Turns", "turns", "was_slow"]

_WINDOW = 40
_LEAST_OF_GC = 0.03
_LEAST_OF_LENGTHS = 0.10
"""Unequal sequences always cost some percent; whoever has them for a reason need not be told each time."""

_EXPLAINED = 0.6
_GOES_WITH = 0.5
_TRANSIENT_STEPS = 3
_SPREADS = 4.0


@dataclass(frozen=True, slots=True)
class Turns:
    """What the slowest ranks of the steps cost (a share of the time; 0: too little), by what explains it."""

    gc: float
    sequence: float
    gc_ranks: int
    slowest_ranks: int
    correlation: float


def turns(found: Measured, alerts: Alerts) -> Turns:
    """What taking turns costs in the newest steps."""
    recent = slice(max(0, len(found.table.steps) - _WINDOW), None)
    step_s = float(np.nansum(np.nanmedian(_told(found.work.step_s[:, recent]), axis=0)))
    raw = np.nan_to_num(found.raw[:, recent])
    seconds = np.nan_to_num(found.work.seconds[:, recent])
    least = np.maximum(np.log1p(alerts.outlier_effect), 3 * found.spreads)[:, None]
    excess_s = np.where(raw > least, seconds * (1 - np.exp(-raw)), 0.0)
    rest = np.nan_to_num(found.ratios[:, recent])
    left_s = np.where(rest > 0, seconds * (1 - np.exp(-rest)), 0.0)
    all_s = np.where(raw > 0, seconds * (1 - np.exp(-raw)), 0.0)
    slowest = excess_s.argmax(axis=0)
    columns = np.arange(excess_s.shape[1])
    lost_s = excess_s[slowest, columns]
    gc_s = _more(found.work.parts["gc"][:, recent])[slowest, columns]
    by_gc_s = np.minimum(gc_s, lost_s)
    by_length_s = np.maximum(all_s.max(axis=0) - left_s.max(axis=0), 0.0)
    correlation = 0.0 if found.explained is None else found.explained.correlation
    collected = by_gc_s > 0
    gc_share = by_gc_s[collected].sum() / max(float(lost_s[collected].sum()), 1e-12)
    gc = float(by_gc_s.sum()) / step_s if step_s > 0 and gc_share >= _EXPLAINED else 0.0
    sequence = float(by_length_s.sum()) / step_s if step_s > 0 and correlation >= _GOES_WITH else 0.0
    return Turns(
        gc if gc >= _LEAST_OF_GC else 0.0,
        sequence if sequence >= _LEAST_OF_LENGTHS else 0.0,
        len(set(slowest[collected].tolist())),
        len(set(slowest[lost_s > 0].tolist())),
        correlation,
    )


def _more(seconds: Floats) -> Floats:
    """How much longer each rank took for it than the median of the others."""
    return np.maximum(np.nan_to_num(seconds - others_median(seconds)), 0.0)


def _told(seconds: Floats) -> Floats:
    """The steps that anybody told."""
    return seconds[:, np.isfinite(seconds).any(axis=0)]


def was_slow(found: Measured, alerts: Alerts) -> list[tuple[int, int, bool]]:
    """(row, steps, still) of ranks that were slow for some of the newest steps in a row."""
    least = np.maximum(np.log1p(alerts.outlier_effect), _SPREADS * found.spreads)[:, None]
    newest = 2 * alerts.outlier_least_steps
    far = (np.nan_to_num(found.ratios) > least)[:, -newest:]
    seen = []
    for row in np.flatnonzero(far.sum(axis=1) >= _TRANSIENT_STEPS):
        longest, end = _longest_run(far[row].tolist())
        if longest >= _TRANSIENT_STEPS:
            seen.append((int(row), longest, end == far.shape[1]))
    return seen


def _longest_run(flags: list[bool]) -> tuple[int, int]:
    """(how long, where it ends) of the longest row of true ones."""
    best, end, now = 0, 0, 0
    for place, flag in enumerate(flags, 1):
        now = now + 1 if flag else 0
        if now >= best and now:
            best, end = now, place
    return best, end
