"""What is drawn of a history in a window of so many steps and so many points?

Points are least, mean and largest of a bin, so that a spike of one step is seen however far one stands back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train_ledger.ledger.history.bins import Bins
from train_ledger.ledger.history.fields import CURVES, GPU_STRIPS, STRIPS
from train_ledger.ledger.history.history import History
from train_ledger.ledger.history.rows import Rows

__all__ = ["Curve", "CurvePart", "Strip", "curves", "gpu_strips", "strips"]

_MOST_POINTS = 4000


@dataclass(frozen=True, slots=True)
class Curve:
    """One field of an attempt, a point a bin; None where nothing was told.

    `worst` is whose figure was the largest; `odd` how many were no finite numbers.
    """

    field: str
    low: Sequence[float | None]
    mean: Sequence[float | None]
    high: Sequence[float | None]
    worst: Sequence[int | None]
    odd: Sequence[int]


@dataclass(frozen=True, slots=True)
class CurvePart:
    """One attempt in the window: the first step of each bin, when it was completed, and the curves.

    `width` is how many steps a bin holds. `redone_to` is the step that an earlier attempt had reached: up to
    it the steps were done once more.
    """

    attempt: int
    width: int
    steps: Sequence[int]
    times: Sequence[float | None]
    curves: Sequence[Curve]
    redone_to: int | None = None


def curves(
    history: History,
    fields: Iterable[str] = CURVES,
    *,
    first: int | None = None,
    last: int | None = None,
    points: int = 800,
) -> tuple[CurvePart, ...]:
    """The curves of these fields of all attempts that have steps in the window, by attempt.

    `points` is how many an attempt has at most. Raises KeyError for a field that has no history.
    """
    places = {name: _place(name) for name in fields}
    history.settle()
    parts: list[CurvePart] = []
    reached: int | None = None
    for number, bins in sorted(history.curves.items()):
        end = bins.base + bins.bins * bins.width
        begin_at, end_at = bins.base if first is None else first, end if last is None else last
        part = bins.narrowed(begin_at, end_at, max(2, min(points, _MOST_POINTS)))
        if part.bins and begin_at < end and end_at >= bins.base:
            redone_to = reached if reached is not None and reached > bins.base else None
            parts.append(_part(number, part, places, redone_to))
        reached = max(end - 1, reached or 0)
    return tuple(parts)


def _place(name: str) -> int:
    if name not in CURVES:
        raise KeyError(name)
    return CURVES.index(name)


def _part(attempt: int, bins: Bins, places: dict[str, int], redone_to: int | None) -> CurvePart:
    kept = bins.arrays()
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = kept["total"] / kept["count"]
    drawn = [
        Curve(
            name,
            _numbers(kept["low"][place]),
            _numbers(mean[place]),
            _numbers(kept["high"][place]),
            [None if rank < 0 else rank for rank in kept["worst"][place].tolist()],
            kept["odd"][place].tolist(),
        )
        for name, place in places.items()
        if kept["count"][place].any() or kept["odd"][place].any()
    ]
    steps = (bins.base + bins.width * np.arange(bins.bins)).tolist()
    return CurvePart(attempt, bins.width, steps, _numbers(kept["first_t"]), drawn, redone_to)


_DIGITS = 7


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Rounded to what a picture can show; None for nan, and where a sum has grown beyond any number."""
    return [
        (float(f"{it:.{_DIGITS}g}") if abs(it) < 1e9 else it) if math.isfinite(it) else None
        for it in values.tolist()
    ]


@dataclass(frozen=True, slots=True)
class Strip:
    """One field of every rank, or GPU: a row each, in their order, and a column for `width` steps or seconds.

    `cells` are the means, nan where nothing was told, of the shape (rows, columns); `base` is the step, or
    time, of the first column. `extreme` are the rows whose newest figures are the highest, at most eight;
    the lowest, where `low_is_worse`.
    """

    field: str
    names: Sequence[str]
    base: int
    width: int
    cells: NDArray[np.float64]
    extreme: Sequence[str] = ()
    low_is_worse: bool = False


def strips(history: History) -> tuple[Strip, ...]:
    """The strips of the newest attempt's ranks; fields that no rank told are left out."""
    history.settle()
    return tuple(_strips(history.strips, STRIPS, lambda name: int(name)))


def gpu_strips(history: History) -> tuple[Strip, ...]:
    """The strips of the GPUs, over time."""
    return tuple(_strips(history.gpus, GPU_STRIPS, lambda name: name))


_EXTREME = 8
_NEWEST = 8
_CLEARLY = 0.05
_LOW_IS_WORSE = frozenset({"DCGM_FI_DEV_SM_CLOCK"})


def _strips(rows: Rows, fields: Sequence[str], order: Callable[[str], Any]) -> Iterable[Strip]:
    means = rows.means()
    means[np.isinf(means)] = np.nan  # a sum has grown beyond any number
    by_name = sorted(range(len(rows.names)), key=lambda place: order(rows.names[place]))
    names = [rows.names[place] for place in by_name]
    for place, name in enumerate(fields):
        cells = means[place][by_name]
        if cells.size and not np.isnan(cells).all():
            is_low = name in _LOW_IS_WORSE
            extreme = _extreme(names, -cells if is_low else cells)
            yield Strip(name, names, rows.base, rows.width, cells, extreme, is_low)


def _extreme(names: Sequence[str], cells: NDArray[np.float64]) -> list[str]:
    """By the mean of the newest columns, the highest first; none that is not clearly above the middle."""
    newest = cells[:, -_NEWEST:]
    told = ~np.isnan(newest)
    means = np.where(told.any(axis=1), np.nansum(newest, axis=1) / np.maximum(1, told.sum(axis=1)), -np.inf)
    known = means[np.isfinite(means)]
    limit = np.median(known) + _CLEARLY * abs(np.median(known)) if known.size else np.inf
    return [names[place] for place in np.argsort(-means, kind="stable")[:_EXTREME] if means[place] > limit]
