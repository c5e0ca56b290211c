"""Whose own work takes longer than that of its peers?

Ranks of one pipeline stage do the same work in a step, and none of it is waiting for the others. A rank is
named only where every gate holds: it is far off in nearly all of the last steps, by more than the spread of
its peers, and that costs the step something. Slow ranks that take turns, a whole stage and half of the hosts
are nobody's fault here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median

from train_ledger.config import Alerts
from train_ledger.facts import PlainStep
from train_ledger.ledger.trends.figures import Outlier
from train_ledger.ledger.trends.stages import Stages

__all__ = ["OwnWork", "outliers"]

_FEWEST_PEERS = 3
_SPREADS = 3.0
_OF_MAD = 1.4826
_SMALLEST_SPREAD = 0.01
_MOST_STEPS = 200

Member = tuple[int, str | None, "OwnWork"]
"""(rank, host, what it told)"""


class OwnWork:
    """What one rank told of its own work in the last steps of the attempt that told any."""

    __slots__ = ("_of",)

    def __init__(self, alerts: Alerts) -> None:
        most = min(max(2, alerts.outlier_least_steps), _MOST_STEPS)
        self._of: deque[tuple[int, float]] = deque(maxlen=most)

    def begin_attempt(self) -> None:
        self._of.clear()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """What the line of a step told."""
        compute_s = values.get("compute_s")
        if compute_s is not None and 0 < compute_s < math.inf:
            self._of.append((step, compute_s))

    def add_all(self, steps: Sequence[PlainStep]) -> None:
        """The same of many steps in a row, all values of which are finite."""
        most = self._of.maxlen or 0
        newest = _told(steps[-most:])
        if len(newest) < most:
            newest = _told(steps)[-most:]
        self._of.extend(newest)

    @property
    def steps(self) -> Mapping[int, float]:
        """The work (s) in each of the last steps; empty where there are too few of them."""
        return dict(self._of) if len(self._of) == self._of.maxlen else {}


def _told(steps: Sequence[PlainStep]) -> list[tuple[int, float]]:
    return [
        (step.step, step.compute_s) for step in steps if step.compute_s is not None and step.compute_s > 0
    ]


def outliers(
    members: Iterable[Member], stages: Stages | None, step_s: float | None, alerts: Alerts
) -> tuple[Outlier, ...]:
    """Those of the ranks whose own work stands out, the worst one of each host; `step_s` is a usual step."""
    told = [(rank, host, steps) for rank, host, work in members if (steps := work.steps)]
    if stages is None or not step_s or len(told) <= _FEWEST_PEERS:
        return ()
    stage_of = {rank: stages(rank) for rank, _, _ in told}
    told.sort(key=lambda it: stage_of[it[0]])
    found = [
        outlier
        for _, peers in groupby(told, key=lambda it: stage_of[it[0]])
        for outlier in _of_stage(list(peers), step_s, alerts)
    ]
    return tuple(_worst_of_each_host(found))


def _worst_of_each_host(found: Iterable[Outlier]) -> list[Outlier]:
    worst: dict[str | int, Outlier] = {}
    for outlier in sorted(found, key=lambda it: (-it.ratio, it.rank)):
        worst.setdefault(outlier.rank if outlier.host is None else outlier.host, outlier)
    return sorted(worst.values(), key=lambda it: it.rank)


def _of_stage(
    told: list[tuple[int, str | None, Mapping[int, float]]], step_s: float, alerts: Alerts
) -> Iterable[Outlier]:
    if len(told) <= _FEWEST_PEERS:
        return
    off: dict[int, list[tuple[float, float]]] = {}
    for step in set().union(*(steps for _, _, steps in told)):
        values = [(steps[step], rank) for rank, _, steps in told if step in steps]
        for rank, ratio, excess_s in _off(values, alerts.outlier_effect):
            off.setdefault(rank, []).append((ratio, excess_s))
    for rank, host, steps in told:
        share = len(off.get(rank, ())) / len(steps)
        if share < alerts.outlier_share or rank not in off:
            continue
        impact = median(excess_s for _, excess_s in off[rank]) / step_s
        if impact >= alerts.outlier_impact:
            yield Outlier(rank, host, median(ratio for ratio, _ in off[rank]), share, impact)


def _off(values: list[tuple[float, int]], effect: float) -> Iterable[tuple[int, float, float]]:
    """Who is far off in one step: (rank, own work to its peers', seconds more)."""
    if len(values) <= _FEWEST_PEERS:
        return
    ordered = sorted(value for value, _ in values)
    # Without itself a slow rank's peers have the lower one of the two values in the middle.
    usual = median(ordered[:-1])
    spread = max(_SMALLEST_SPREAD * usual, _OF_MAD * median(abs(value - usual) for value in ordered))
    least = max((1 + effect) * usual, usual + _SPREADS * spread)
    for value, rank in values:
        if value >= least:
            yield rank, value / usual, value - usual
