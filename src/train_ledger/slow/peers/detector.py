"""Which rank does Megatron's StragglerDetector name as the slowest, again and again?

Each report tells the least and the most over all ranks of some figures, and whose they are: the time in the
traced operations (the forward pass) and that for the batch. Its slowest rank is one in every report; it drags
where it is the same one for long, far from the fastest, and not by the work of its stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.peers.ratios import FEWEST
from train_ledger.slow.peers.verdict import Excess, Phase, Who
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Floats

__all__ = ["by_detector", "tells_stragglers"]

_FIGURES: Mapping[str, Phase] = {"traced_s": "compute", "data_wait_s": "data"}
_FEWEST_REPORTS = 4
_LOW_CLOCK = 0.9
_RISEN = 0.5


@dataclass(frozen=True, slots=True)
class _Slowest:
    """The rank (a row) that is the slowest in most of the newest reports, and by how much."""

    row: int
    phase: Phase
    ratio: float
    share: float
    excess_s: float
    impact: float
    reports: int
    risen: bool
    since_step: int


def tells_stragglers(table: StepTable) -> bool:
    """Whether the log holds the detector's reports."""
    return table.tells("traced_s")


def by_detector(table: StepTable, alerts: Alerts) -> Who:
    """The rank that drags by the reports, if one does."""
    if (table.world_size or len(table.places)) < FEWEST:
        return Who("cannot_tell", "of two ranks nobody can say which one is as usual")
    found = [it for name, phase in _FIGURES.items() if (it := _slowest(table, name, phase, alerts))]
    if not found:
        return Who("cannot_tell", "Megatron's StragglerDetector reported too seldom to say who drags")
    worst = max(found, key=lambda it: it.impact)
    rank, reason = table.ranks[worst.row], _in_words(table, worst)
    if not _is_far(worst, alerts):
        return Who("nobody", f"{reason}: nobody is slow for long", steps=worst.reports)
    if not (worst.risen or _is_of_one_stage(table) or _clock_is_low(table, worst)):
        return Who(
            "cannot_tell", f"{reason}; it may have more work by its pipeline stage", steps=worst.reports
        )
    excess = Excess(
        rank, table.hosts[worst.row], worst.ratio, worst.share, worst.excess_s, worst.impact, worst.phase,
        {worst.phase: worst.excess_s}, since_step=worst.since_step,
    )  # fmt: skip
    everybody = range(table.world_size) if table.world_size else table.ranks
    return Who(
        "rank",
        reason,
        ranks=(rank,),
        phase=worst.phase,
        excesses=(excess,),
        victims=tuple(it for it in everybody if it != rank),
        cost=worst.impact,
        since_step=worst.since_step,
        steps=worst.reports,
        by_log=True,
    )


def _slowest(table: StepTable, name: str, phase: Phase, alerts: Alerts) -> _Slowest | None:
    """Who is slowest in the reports that cover the newest steps; None where there are too few of them."""
    seconds = table.of(name)
    reported = (np.isfinite(seconds).sum(axis=0) >= 2) & table.steady
    seconds, steps = seconds[:, reported], table.steps[reported]
    apart = max(1, int(np.median(np.diff(steps)))) if len(steps) > 1 else 1
    count = max(_FEWEST_REPORTS, -(-alerts.outlier_least_steps // apart))
    if len(steps) < count:
        return None
    slowest = np.where(np.isfinite(seconds), seconds, -np.inf).argmax(axis=0)
    most, least = np.nanmax(seconds, axis=0), np.nanmin(seconds, axis=0)
    row = int(np.bincount(slowest[-count:]).argmax())
    step_s = _step_s(table)
    over = (most - least) / (least if phase == "compute" else step_s)
    is_its = slowest == row
    far = is_its & (over > alerts.outlier_effect)
    excess_s = float(np.median((most - least)[-count:]))
    before = over[:-count]
    typical = float(np.median(over[-count:]))
    risen = len(before) >= count and float(np.quantile(before, 0.25)) < _RISEN * typical
    return _Slowest(
        row, phase, 1 + typical, float(far[-count:].mean()), excess_s, excess_s / step_s, count, risen,
        int(steps[_begin(far)]),
    )  # fmt: skip


def _begin(far: np.ndarray) -> int:
    """From which report on it is far off rather than not."""
    costs = np.concatenate(([0.0], np.cumsum(np.where(far, 1.0, -1.0))))
    return min(int(costs.argmin()), len(far) - 1)


def _is_far(it: _Slowest, alerts: Alerts) -> bool:
    return (
        it.share >= alerts.outlier_share
        and it.ratio > 1 + alerts.outlier_effect
        and it.impact >= alerts.outlier_impact
    )


def _is_of_one_stage(table: StepTable) -> bool:
    return table.layout_told and len(set(table.stages)) == 1


def _clock_is_low(table: StepTable, it: _Slowest) -> bool:
    """Whether the reports name it as the card with the lowest clock, too."""
    clocks = table.of("gpu_clock_mhz")[:, -it.reports :]
    others = np.delete(clocks, it.row, axis=0)
    if not np.isfinite(clocks[it.row]).any() or not np.isfinite(others).any():
        return False
    return bool(np.nanmedian(clocks[it.row]) < _LOW_CLOCK * np.nanmax(others))


def _step_s(table: StepTable) -> float:
    told: Floats = table.of("step_time_s")[:, table.steady]
    return float(np.nanmedian(told)) if np.isfinite(told).any() else np.inf


def _in_words(table: StepTable, it: _Slowest) -> str:
    what = "in the forward pass" if it.phase == "compute" else "for its batch"
    return (
        f"rank {table.ranks[it.row]} is the slowest {what} in {it.share:.0%} of the last {it.reports} "
        "reports of Megatron's StragglerDetector, "
        f"{it.excess_s:.3g} s a step more than the fastest ({it.ratio:.2f} ×)"
    )
