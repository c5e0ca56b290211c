"""Has one pipeline stage more work than the others?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.peers.measured import Measured
from train_ledger.slow.table.step_table import Floats

__all__ = ["SlowStage", "slow_stage"]

_LEAST = 0.10
"""Embeddings and the output layer make stages differ by a few percent in every layout."""


_RISEN = 0.5


@dataclass(frozen=True, slots=True)
class SlowStage:
    """The stage whose ranks all work longer; `has_risen`: not from the beginning on."""

    stage: int
    ratio: float
    share: float
    impact: float
    excess_s: float
    has_risen: bool


def slow_stage(found: Measured, alerts: Alerts) -> SlowStage | None:
    """The stage that all others wait for, where there is one."""
    stages = np.unique(found.groups[found.groups >= 0])
    if len(stages) < 2:
        return None
    newest = found.work.seconds[:, -alerts.outlier_least_steps :]
    medians = np.array([_median(newest[found.groups == stage]) for stage in stages])
    medians = medians[:, (medians > 0).all(axis=0)]
    if medians.shape[1] < alerts.outlier_share * alerts.outlier_least_steps:
        return None
    slowest = int(np.median(medians, axis=1).argmax())
    usual = np.median(np.delete(medians, slowest, axis=0), axis=0)
    ratio = medians[slowest] / usual
    share = float((ratio > 1 + _LEAST).mean())
    excess_s = float(np.median(medians[slowest] - usual))
    impact = excess_s / found.step_s
    if not (share >= alerts.outlier_share and impact >= alerts.outlier_impact):
        return None
    risen = _median(found.risen[found.groups == stages[slowest]][:, -alerts.outlier_least_steps :])
    usual_ratio = float(np.median(ratio))
    has_risen = bool(np.isfinite(risen).any() and np.nanmedian(risen) > _RISEN * np.log(usual_ratio))
    return SlowStage(int(stages[slowest]), usual_ratio, share, impact, excess_s, has_risen)


def _median(values: Floats) -> Floats:
    told = np.isfinite(values).any(axis=0)
    found = np.full(values.shape[1], np.nan)
    if told.any():
        found[told] = np.nanmedian(values[:, told], axis=0)
    return found
