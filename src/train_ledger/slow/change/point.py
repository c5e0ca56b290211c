"""From which step on is a series higher than before, did it jump or does it climb?

The row is cut where its ranks part best, each part again, as long as the parts differ by what counts; then
the last change that still holds is looked at closely: medians on both sides, a rank test, the steps at which
it can have begun, and whether the newer side goes on rising.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from train_ledger.slow.change.rank_test import best_cut, rank_test
from train_ledger.slow.table.step_table import Flags, Floats, Ints

__all__ = ["FEWEST", "Change", "change"]

FEWEST = 8
"""Steps on either side of a change, at least: so few of 40 s have taken five minutes already."""

_Z = 4.5
"""So far apart by chance are the sides of the best of a thousand cuts once in a hundred rows."""

_P = 1e-3
_DEPTH = 5
_LIKELY = 3.0
_CLIMBS = 0.5
_PAIRS = 400


@dataclass(frozen=True, slots=True)
class Change:
    """A series changed at `step`, for certain within `between` (both included).

    `before` and `after` are medians, in the unit of the series (of a ramp `after` is its newest part);
    `effect` is after ÷ before − 1 (infinite from nothing on); `p` that of a rank test of both sides.
    """

    step: int
    between: tuple[int, int]
    before: float
    after: float
    shape: Literal["jump", "ramp"]
    p: float

    @property
    def effect(self) -> float:
        return self.after / self.before - 1 if self.before > 0 else float("inf")

    @property
    def rise(self) -> float:
        """By how much it changed, in the unit of the series."""
        return self.after - self.before


def change(
    series: Floats,
    steps: Ints,
    wanted: Flags | None = None,
    *,
    effect: float = 0.05,
    least: float = 0.0,
) -> Change | None:
    """The last change of the series that still holds at its end; None where there is none.

    `wanted` leaves out single steps, as those of checkpoints. A change counts where the medians differ by
    more than `effect` of the earlier one and by more than `least`, in the unit of the series.
    """
    told = np.isfinite(series) if wanted is None else np.isfinite(series) & wanted
    values, numbers = series[told], steps[told]
    if len(values) < 2 * FEWEST:
        return None
    cuts = [0, *sorted(_cuts(values, 0, len(values), effect, least, _DEPTH)), len(values)]
    medians = [float(np.median(values[low:high])) for low, high in pairwise(cuts)]
    held = _held(medians, np.diff(cuts).tolist(), effect, least)
    if held is None:
        return None
    start = cuts[held - 1]
    later = [cut - start for cut in cuts[held:]]
    return _looked_at(values[start:], numbers[start:], later, effect, least)


def _counts(before: float, after: float, effect: float, least: float) -> bool:
    return abs(after - before) > max(effect * abs(before), least)


def _cuts(values: Floats, low: int, high: int, effect: float, least: float, depth: int) -> list[int]:
    """Where the row parts, as far as the parts differ."""
    part = values[low:high]
    at, z = best_cut(part, FEWEST)
    if z < _Z or not depth:
        return []
    cut = low + at
    inner = [
        *_cuts(values, low, cut, effect, least, depth - 1),
        *_cuts(values, cut, high, effect, least, depth - 1),
    ]
    if inner or _counts(float(np.median(part[:at])), float(np.median(part[at:])), effect, least):
        return [*inner, cut]
    return []


def _held(medians: list[float], lengths: list[int], effect: float, least: float) -> int | None:
    """The first part from which on all are higher than the one before them, else the same of lower ones.

    A rise counts where most of the row before it was lower than its end: not the way back from a dip.
    """
    last = medians[-1]
    for sign in (1, -1):
        for part in range(1, len(medians)):
            before = medians[part - 1]
            if not all(
                _counts(before, it, effect, least) and (it - before) * sign > 0 for it in medians[part:]
            ):
                continue
            lower = sum(
                length
                for it, length in zip(medians[:part], lengths, strict=False)
                if _counts(it, last, effect, least) and it < last
            )
            if sign < 0 or 2 * lower >= sum(lengths[:part]):
                return part
    return None


def _looked_at(values: Floats, numbers: Ints, cuts: list[int], effect: float, least: float) -> Change | None:
    """The change near the first of the cuts, measured; the last cut is the end."""
    cut = cuts[0]
    before, after = float(np.median(values[:cut])), float(np.median(values[cuts[-2] :]))
    p = rank_test(values[:cut], values[cut:])
    if p > _P or not _counts(before, after, effect, least):
        return None
    if _climbs([values[low:high] for low, high in pairwise(cuts)], after - before):
        return _ramp(values, numbers, p)
    first, best, last = _onset(values[: cuts[1]], before, float(np.median(values[cut : cuts[1]])))
    return Change(int(numbers[best]), (int(numbers[first]), int(numbers[last])), before, after, "jump", p)


def _onset(values: Floats, before: float, after: float) -> tuple[int, int, int]:
    """(earliest, likeliest, latest) first value of the newer level, by the sums of distances to both."""
    distances = np.abs(values - before) - np.abs(values - after)
    costs = np.concatenate(([0.0], np.cumsum(distances)))
    costs = costs[1 : len(values)]
    best = int(costs.argmin())
    off = np.concatenate((np.abs(values[: best + 1] - before), np.abs(values[best + 1 :] - after)))
    scale = max(float(off.mean()), 1e-3 * abs(after - before))
    likely = np.flatnonzero(costs - costs[best] <= _LIKELY * scale)
    return int(likely[0]) + 1, best + 1, int(likely[-1]) + 1


def _slope(values: Floats) -> float:
    """The median of the slopes between values half of the row apart (Theil and Sen's, thinned)."""
    half = len(values) // 2
    if half < 2:
        return 0.0
    return float(np.median((values[half:] - values[: len(values) - half]) / half))


def _climbs(parts: list[Floats], rise: float) -> bool:
    """Whether the newer levels themselves go on in the direction of the change, for a good part of it."""
    climbed = 0.0
    for part in parts:
        third = max(4, len(part) // 3)
        if len(part) >= 3 * FEWEST and rank_test(part[:third], part[-third:]) <= _P:
            climbed += _slope(part) * len(part)
    return bool(climbed * np.sign(rise) > _CLIMBS * abs(rise))


def _ramp(values: Floats, numbers: Ints, p: float) -> Change:
    """The row as a level that begins to climb: at which step, and up to where."""
    places = np.unique(np.linspace(FEWEST, len(values) - FEWEST, _PAIRS).astype(int))
    costs = np.empty(len(places))
    index = np.arange(len(values))
    for number, place in enumerate(places):
        level = float(np.median(values[:place]))
        climb = float(np.median((values[place:] - level) / (index[place:] - place + 1)))
        fitted = np.where(index < place, level, level + climb * (index - place + 1))
        costs[number] = np.abs(values - fitted).sum()
    best = int(costs.argmin())
    scale = float(costs[best]) / len(values)
    likely = places[costs - costs[best] <= _LIKELY * scale]
    start = int(places[best])
    before = float(np.median(values[:start]))
    after = float(np.median(values[-max(FEWEST, (len(values) - start) // 4) :]))
    between = (int(numbers[likely[0]]), int(numbers[likely[-1]]))
    return Change(int(numbers[start]), between, before, after, "ramp", p)
