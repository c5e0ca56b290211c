"""How far was each rank off its peers, by every figure that the gates ask for?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.peers.certainty import is_sure
from train_ledger.slow.peers.lengths import Explained, by_lengths
from train_ledger.slow.peers.ratios import FEWEST, LIMIT, log_ratios, others_median, run_sums, spread
from train_ledger.slow.peers.spans import span_excess
from train_ledger.slow.peers.work import OwnWork, own_work
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Flags, Floats, Ints

__all__ = ["Measured", "measured", "median_of"]

_MOST_STEPS = 200
_NEEDED = (
    "step_time_s", "compute_s", "comm_wait_s", "data_wait_s", "gc_s", "log_s", "ckpt_s", "fwd_s", "opt_s",
    "tokens", "tokens_squared",
)  # fmt: skip
_BASELINE_STEPS = 20
_WAITS_SHARE = 0.5


@dataclass(frozen=True)
class Measured:
    """Figures of ranks × steady steps, and of ranks; `table` has these steps alone.

    `raw` are the log-ratios of own work to that of the peers of the stage, `ratios` the same without what
    tokens explain; `recent` the newest steps of each rank by which it is judged. `groups` has each rank's
    stage. `usual_s` is the usual own work of each rank before; NaN where nobody knows.
    """

    table: StepTable
    work: OwnWork
    groups: Ints
    raw: Floats
    ratios: Floats
    least_steps: int
    explained: Explained | None
    recent: Flags
    spreads: Floats
    sums: Floats
    excess_s: Floats
    waits_less_s: Floats | None
    usual_s: Floats

    def off(self, ratios: Floats, sums: Floats, alerts: Alerts) -> Flags:
        """Which ranks pass the gates: far off, in nearly all steps, for long, at a cost, and for certain."""
        least = np.log1p(alerts.outlier_effect)
        far = (ratios > least) & self.recent
        share = _share(far, self.recent)
        ratio = median_of(ratios, self.recent)
        good = (share >= alerts.outlier_share) & (ratio >= least) & (sums[:, -1] >= LIMIT)
        good = np.asarray(good & (self.impact >= alerts.outlier_impact))
        if not good.any():
            return np.asarray(good)
        was = log_ratios(self.usual_s[:, None], self.groups)[:, 0]
        return np.asarray(good & is_sure(ratios, was, self.recent, self.spreads, float(least)))

    @property
    def impact(self) -> Floats:
        """What each rank's excess costs, as a share of the step."""
        return median_of(self.excess_s, self.recent) / self.step_s

    @cached_property
    def risen(self) -> Floats:
        """The log-ratios of each rank's work over its own earlier; NaN where nothing is earlier."""
        return log_ratios(
            self.work.seconds / self.usual_s[:, None], np.zeros(len(self.groups), dtype=np.int64)
        )

    @property
    def step_s(self) -> float:
        """A usual step; NaN where nobody tells one."""
        told = self.work.step_s[self.work.step_s > 0]
        return float(np.median(told)) if told.size else math.nan

    def has_risen(self, row: int) -> bool | None:
        """Whether a rank was less off at first; None where nothing is earlier."""
        risen = median_of(self.risen[row : row + 1], self.recent[row : row + 1])[0]
        off = median_of(self.ratios[row : row + 1], self.recent[row : row + 1])[0]
        if not np.isfinite(risen):
            return None
        return bool(risen >= (_WAITS_SHARE * off if np.isfinite(off) else 0.0))


def measured(table: StepTable, alerts: Alerts, before: StepTable | None = None) -> Measured | None:
    """The figures of the newest steady steps; None where nothing is told of the ranks' own work.

    `before` are earlier steps of the run, as each rank was used to be; else the first of the table are.
    """
    steady = _steady(table, alerts)
    work = _work_of(steady)
    if work is None:
        return None
    groups = _groups(steady)
    raw = log_ratios(work.seconds, groups)
    explained = by_lengths(steady, raw, groups)
    ratios = raw if explained is None else raw - explained.ratios
    recent = _newest(np.isfinite(work.seconds), max(2, alerts.outlier_least_steps))
    spreads = spread(ratios, groups)
    own = np.where(np.isfinite(ratios), ratios, 0.0)
    waits_s = work.waits_s
    return Measured(
        steady,
        work,
        groups,
        raw,
        ratios,
        alerts.outlier_least_steps,
        explained,
        recent,
        spreads,
        run_sums(ratios, spreads),
        work.seconds * (1 - np.exp(-own)),
        None if waits_s is None else _less(waits_s, groups),
        _usual(steady, work, alerts, before),
    )


def _steady(table: StepTable, alerts: Alerts) -> StepTable:
    told = {name: it for name, it in table.values.items() if name in _NEEDED or name.startswith("span_")}
    most = max(_MOST_STEPS, 4 * alerts.outlier_least_steps)
    return replace(table, values=told).columns(table.steady).newest(most)


def _work_of(steady: StepTable) -> OwnWork | None:
    if not len(steady.steps):
        return None
    work = own_work(steady)
    if work is not None and work.by != "parts":
        return work
    beyond_s = span_excess(steady, _groups(steady))
    if beyond_s is None:
        return None if work is None else _with_common(work)
    if work is None:
        step_s = steady.of("step_time_s")
        work = OwnWork(np.where(np.isfinite(step_s), 0.0, np.nan), {}, step_s, None, "parts")
    return _with_common(
        replace(work, seconds=work.seconds + beyond_s, parts={**work.parts, "host": beyond_s})
    )


def _groups(table: StepTable) -> Ints:
    return np.array([-1 if stage is None else stage for stage in table.stages], dtype=np.int64)


def _with_common(work: OwnWork) -> OwnWork:
    """Where computing is not known, all pass for computing as long as the one with least time for it."""
    with np.errstate(invalid="ignore"):
        left_s = np.where(np.isfinite(work.step_s), np.maximum(work.step_s - work.seconds, 0.0), np.inf)
    common_s = left_s.min(axis=0)
    common_s[~np.isfinite(common_s)] = np.nan
    parts = {**work.parts, "compute": np.broadcast_to(common_s, work.seconds.shape)}
    return OwnWork(work.seconds + common_s, parts, work.step_s, work.waits_s, work.by)


def _newest(told: Flags, count: int) -> Flags:
    """The last `count` steps that each rank told; none of a rank that told fewer."""
    from_end = np.cumsum(told[:, ::-1], axis=1)[:, ::-1]
    enough = told.sum(axis=1) >= count
    return np.asarray(told & (from_end <= count) & enough[:, None])


def _usual(steady: StepTable, work: OwnWork, alerts: Alerts, before: StepTable | None) -> Floats:
    """How long each rank worked in a step before; NaN where it told too little, or too few others enough."""
    first = work.seconds[:, : max(0, work.seconds.shape[1] - 2 * alerts.outlier_least_steps)]
    if before is not None:
        earlier = _work_of(_steady(before, alerts))
        if earlier is not None and earlier.by == work.by:
            first = _of_ranks(earlier.seconds, before.ranks, steady.ranks)
    told = np.isfinite(first).sum(axis=1) >= _BASELINE_STEPS
    usual = np.full(len(steady.places), np.nan)
    if told.sum() >= FEWEST:
        usual[told] = np.nanmedian(first[told], axis=1)
        usual[usual <= 0] = np.nan
    return usual


def _of_ranks(values: Floats, told: Sequence[int], wanted: Sequence[int]) -> Floats:
    """The rows of the wanted ranks; NaN for who is not there."""
    row_of = {rank: row for row, rank in enumerate(told)}
    found = np.full((len(wanted), values.shape[1]), np.nan)
    for row, rank in enumerate(wanted):
        if rank in row_of:
            found[row] = values[row_of[rank]]
    return found


def _less(waits_s: Floats, groups: Ints) -> Floats:
    """How much less each rank waited than the median of the others of its group."""
    found = np.full(waits_s.shape, np.nan)
    for group in np.unique(groups[groups >= 0]):
        members = np.flatnonzero(groups == group)
        if len(members) >= FEWEST:
            found[members] = others_median(waits_s[members]) - waits_s[members]
    return found


def median_of(values: Floats, wanted: Flags) -> Floats:
    """The median of each row's wanted values; NaN where none is told."""
    chosen = np.where(wanted, values, np.nan)
    found = np.full(len(chosen), np.nan)
    told = np.isfinite(chosen).any(axis=1)
    if told.any():
        found[told] = np.nanmedian(chosen[told], axis=1)
    return found


def _share(far: Flags, recent: Flags) -> Floats:
    return np.asarray(far.sum(axis=1) / np.maximum(1, recent.sum(axis=1)))
