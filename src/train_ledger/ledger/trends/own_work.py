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
from itertools import islice
from statistics import median

from train_ledger.config import Alerts
from train_ledger.facts import PlainStep
from train_ledger.ledger.trends.figures import Outlier
from train_ledger.ledger.trends.stages import Stages

__all__ = ["OF_MAD", "OwnWork", "outliers"]

OF_MAD = 1.4826
"""So many median absolute deviations are one standard deviation, where figures vary as normal ones do."""

_FEWEST_PEERS = 3
_SPREADS = 3.0
_SMALLEST_SPREAD = 0.01
_MOST_STEPS = 200
_READ_AHEAD = 4
"""Steps by which one rank may have been read further than another, and one."""

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
        most = self.most
        newest = _told(steps[-most:])
        if len(newest) < most:
            newest = _told(steps)[-most:]
        self._of.extend(newest)

    @property
    def most(self) -> int:
        """How many steps are kept."""
        return self._of.maxlen or 0

    @property
    def is_known(self) -> bool:
        """Whether it told as many steps as it takes to judge them."""
        return len(self._of) == self.most

    def newest(self, most: int | None = None) -> Iterable[tuple[int, float]]:
        """(step, seconds) of the last steps, newest first."""
        return islice(reversed(self._of), most)


def _told(steps: Sequence[PlainStep]) -> list[tuple[int, float]]:
    return [
        (step.step, step.compute_s) for step in steps if step.compute_s is not None and step.compute_s > 0
    ]


def outliers(
    members: Iterable[Member],
    world_size: int | None,
    stages: Stages | None,
    step_s: float | None,
    alerts: Alerts,
) -> tuple[Outlier, ...]:
    """Those of the ranks whose own work stands out, the worst one of each host; `step_s` is a usual step.

    Only where most ranks of the run tell theirs: the ranks of one host among many are no measure of what is
    usual, and who knows no others would say something else than who does.
    """
    told = [member for member in members if member[2].is_known]
    if stages is None or not step_s or len(told) <= max(_FEWEST_PEERS, (world_size or 0) / 2):
        return ()
    by_stage: dict[int, list[Member]] = {}
    for member in told:
        by_stage.setdefault(stages(member[0]), []).append(member)
    found = [it for peers in by_stage.values() for it in _of_stage(peers, step_s, alerts)]
    return tuple(_worst_of_each_host(found))


def _worst_of_each_host(found: Iterable[Outlier]) -> list[Outlier]:
    worst: dict[str | int, Outlier] = {}
    for outlier in sorted(found, key=lambda it: (-it.ratio, it.rank)):
        worst.setdefault(outlier.rank if outlier.host is None else outlier.host, outlier)
    return sorted(worst.values(), key=lambda it: it.rank)


def _of_stage(peers: list[Member], step_s: float, alerts: Alerts) -> Iterable[Outlier]:
    """Who is off in enough of the steps is off in one of so few; only where somebody is all are looked at."""
    steps = peers[0][2].most
    may_miss = math.floor((1 - alerts.outlier_share) * steps)
    if not _off(peers, may_miss + _READ_AHEAD, alerts.outlier_effect):
        return
    off = _off(peers, None, alerts.outlier_effect)
    for rank, host, _ in peers:
        share = len(off.get(rank, ())) / steps
        if share < alerts.outlier_share or rank not in off:
            continue
        impact = median(excess_s for _, excess_s in off[rank]) / step_s
        if impact >= alerts.outlier_impact:
            yield Outlier(rank, host, median(ratio for ratio, _ in off[rank]), share, impact)


def _off(peers: list[Member], most: int | None, effect: float) -> dict[int, list[tuple[float, float]]]:
    """Who was far off in which of the last steps: (own work to its peers', seconds more) of each."""
    values: dict[int, list[tuple[float, int]]] = {}
    for rank, _, work in peers:
        for step, value in work.newest(most):
            values.setdefault(step, []).append((value, rank))
    off: dict[int, list[tuple[float, float]]] = {}
    for told in values.values():
        for rank, ratio, excess_s in _off_in_one(told, effect):
            off.setdefault(rank, []).append((ratio, excess_s))
    return off


def _off_in_one(values: list[tuple[float, int]], effect: float) -> Iterable[tuple[int, float, float]]:
    """Who is far off in one step: (rank, own work to its peers', seconds more)."""
    if len(values) <= _FEWEST_PEERS:
        return
    values.sort()
    ordered = [value for value, _ in values]
    # Without itself a slow rank's peers have the lower one of the two values in the middle.
    usual = _middle(ordered[:-1])
    if ordered[-1] < (1 + effect) * usual:
        return
    spread = max(_SMALLEST_SPREAD * usual, OF_MAD * median(abs(value - usual) for value in ordered))
    least = max((1 + effect) * usual, usual + _SPREADS * spread)
    for value, rank in reversed(values):
        if value < least:
            break
        yield rank, value / usual, value - usual


def _middle(ordered: Sequence[float]) -> float:
    """The median of values in order."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
