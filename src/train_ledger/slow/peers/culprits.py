"""Which ranks drag, and do the others wait for them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.peers.measured import Measured, median_of
from train_ledger.slow.peers.ratios import FEWEST, LIMIT, others_median, run_sums, spread
from train_ledger.slow.peers.verdict import Excess, Phase, Waits
from train_ledger.slow.table.step_table import Floats

__all__ = ["excess_of", "off_by_history", "off_by_peers", "waits_of", "whole_hosts"]

_COVERED = 0.5
_RIVAL = 1.5
_MOST_OF_HOST = 0.75
_NEARLY = 0.75
_SEEN_FROM = 0.05
_FELT_FROM = 0.3


def off_by_peers(found: Measured, alerts: Alerts) -> list[int]:
    """The rows that pass the gates beside their peers, and who on their hosts is about to."""
    off = found.off(found.ratios, found.sums, alerts)
    if off.any():
        nearly = found.off(
            found.ratios, found.sums, replace(alerts, outlier_share=_NEARLY * alerts.outlier_share)
        )
        hosts = {found.table.hosts[row] for row in np.flatnonzero(off)} - {None}
        off |= nearly & np.array([host in hosts for host in found.table.hosts])
    return [int(row) for row in np.flatnonzero(off)]


def off_by_history(found: Measured, alerts: Alerts) -> list[int]:
    """The rows of stages too small for peers whose own work rose, and which the others wait for now."""
    sizes = {int(group): int((found.groups == group).sum()) for group in np.unique(found.groups)}
    small = np.array([sizes[int(group)] < FEWEST for group in found.groups])
    if not small.any() or len(small) < FEWEST or found.work.waits_s is None:
        return []
    everybody = np.zeros(len(small), dtype=np.int64)
    risen = np.where(small[:, None], found.risen, np.nan)
    if not np.isfinite(risen).any():
        return []
    sums = run_sums(risen, spread(found.risen, everybody))
    least = np.log1p(alerts.outlier_effect)
    share = ((risen > least) & found.recent).sum(axis=1) / np.maximum(1, found.recent.sum(axis=1))
    excess_s = found.work.seconds * (1 - np.exp(-np.nan_to_num(risen)))
    cost = median_of(excess_s, found.recent) / found.step_s
    good = (share >= alerts.outlier_share) & (sums[:, -1] >= LIMIT) & (cost >= alerts.outlier_impact)
    waited = median_of(found.work.waits_s, found.recent)
    return [int(row) for row in np.flatnonzero(good) if waited[row] <= np.nanmin(waited) * (1 + least)]


def whole_hosts(found: Measured, rows: Sequence[int]) -> tuple[str, ...]:
    """The hosts of which most ranks, and more than one, are among these rows."""
    of_host: dict[str, list[int]] = {}
    for row, host in enumerate(found.table.hosts):
        if host is not None:
            of_host.setdefault(host, []).append(row)
    chosen = set(rows)
    return tuple(
        sorted(
            host
            for host, own in of_host.items()
            if len(own) > 1 and len(chosen.intersection(own)) >= max(2, _MOST_OF_HOST * len(own))
        )
    )


def waits_of(found: Measured, rows: Sequence[int]) -> Waits:
    """Whether the others wait for these rows: first in their stage, then in their replica of the model."""
    if found.waits_less_s is None:
        return (
            "contradict"
            if found.work.by == "parts" and not all(_is_felt(found, row) for row in rows)
            else "not_told"
        )
    less_s = median_of(found.waits_less_s, found.recent)
    excess_s = median_of(found.excess_s, found.recent)
    verdicts = [_waits_of(found, row, set(rows), less_s[row], excess_s[row], less_s) for row in rows]
    if "contradict" in verdicts:
        return "contradict"
    return "confirm" if "confirm" in verdicts else "not_told"


def _is_felt(found: Measured, row: int) -> bool:
    """Whether steps are longer where this rank's excess is, as far as that varies enough to be seen.

    Its host may wait for data, say, and its GPU still have enough to do.
    """
    excess_s, step_s = found.excess_s[row][found.recent[row]], found.work.step_s[row][found.recent[row]]
    told = np.isfinite(excess_s) & np.isfinite(step_s)
    if told.sum() < FEWEST or excess_s[told].std() < _SEEN_FROM * found.step_s or step_s[told].std() == 0:
        return True
    return bool(np.corrcoef(excess_s[told], step_s[told])[0, 1] >= _FELT_FROM)


def _waits_of(
    found: Measured, row: int, chosen: set[int], less_s: float, excess_s: float, of_all: Floats
) -> Waits:
    if not np.isfinite(less_s):
        return "not_told"
    if less_s < _COVERED * excess_s:
        return "contradict"
    replica = found.table.places[row].replica
    rivals = [
        of_all[other]
        for other, place in enumerate(found.table.places)
        if place.replica == replica and other not in chosen and np.isfinite(of_all[other])
    ]
    return "contradict" if rivals and max(rivals) > _RIVAL * less_s else "confirm"


def excess_of(found: Measured, row: int, alerts: Alerts, *, by_history: bool = False) -> Excess:
    """The figures of one rank."""
    ratios = found.risen if by_history else found.ratios
    recent = found.recent[row]
    ratio = float(np.exp(np.nanmedian(np.where(recent, ratios[row], np.nan))))
    own_s = found.work.seconds[row]
    excess_s = float(np.nanmedian(np.where(recent, own_s * (1 - np.exp(-ratios[row])), np.nan)))
    parts = _parts(found, row)
    place = found.table.places[row]
    less_s = None if found.waits_less_s is None else median_of(found.waits_less_s, found.recent)[row]
    begin = _begin(ratios[row], float(np.log(ratio)))
    share = float((ratios[row][recent] > np.log1p(alerts.outlier_effect)).mean())
    return Excess(
        place.rank,
        place.host,
        ratio,
        share,
        excess_s,
        excess_s / found.step_s,
        max(parts, key=lambda phase: parts[phase]),
        parts,
        float(less_s) if less_s is not None and np.isfinite(less_s) else None,
        int(found.table.steps[begin]),
    )


def _begin(ratios: Floats, now: float) -> int:
    """From which column on a rank is as far off as it is now rather than not at all."""
    told = np.flatnonzero(np.isfinite(ratios))
    nearer = np.abs(ratios[told]) - np.abs(ratios[told] - now)
    return int(told[min(int(np.concatenate(([0.0], np.cumsum(nearer))).argmin()), len(told) - 1)])


def _parts(found: Measured, row: int) -> dict[Phase, float]:
    """By how many seconds each phase of a rank is longer than its peers'."""
    members = np.flatnonzero(found.groups == found.groups[row])
    place = int(np.flatnonzero(members == row)[0])
    parts: dict[Phase, float] = {}
    for phase, seconds in found.work.parts.items():
        if len(members) >= FEWEST:
            usual = others_median(seconds[members])[place]
        else:
            usual = np.nanmedian(np.where(found.recent, np.nan, seconds), axis=1)[row]
        more = np.where(found.recent[row], seconds[row] - usual, np.nan)
        parts[phase] = float(np.nanmean(more)) if np.isfinite(more).any() else 0.0
    return parts
