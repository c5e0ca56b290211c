"""What changed between two traces of the same training?

Both are broken down into the same buckets; the differences of the mean steps add up to the difference of
their lengths to the nanosecond. How sure they are is told from five steps a side on, by drawing runs of
neighbouring steps, with all ranks of each, at random; of fewer the kernels alone are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.breakdown import Breakdown, Degraded
from train_ledger.slow.trace.buckets import BUCKETS, HELD_BY, Buckets
from train_ledger.slow.trace.conclusion import BucketDifference, Changed, conclusion
from train_ledger.slow.trace.host_calls import calls_of
from train_ledger.slow.trace.kernel_lengths import inefficient, longer_than_usual, usual_lengths
from train_ledger.slow.trace.kernels import KernelDifference, kernel_differences, kernels_of

__all__ = ["BucketDifference", "TraceDifference", "trace_difference"]

_FEWEST_STEPS = 5
_DRAWS = 2000
_SEED = 20_261_130
_MOST_KERNELS = 20


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """`buckets` are None where one side cannot tell them; their time is in that of `held_by`, on both.

    `leading` is the bucket that the conclusion names, None where it names none. `calls` are those of the
    host to the GPU's driver, which differ as kernels do.
    """

    window: BucketDifference
    buckets: Mapping[str, BucketDifference | None]
    held_by: Mapping[str, str]
    host_parts: Mapping[str, BucketDifference]
    conclusion: str
    kernels: tuple[KernelDifference, ...]
    degraded: tuple[Degraded, ...]
    leading: str | None = None
    other_parts: Mapping[str, BucketDifference] = field(default_factory=dict)
    calls: tuple[KernelDifference, ...] = ()


def trace_difference(old: Breakdown, new: Breakdown) -> TraceDifference:
    """Compare the mean step of all ranks of one breakdown with that of another.

    Raises ValueError where a side has no step.
    """
    kernels_before, kernels_after = kernels_of(old.ranks.values()), kernels_of(new.ranks.values())
    usual = usual_lengths(kernels_before, kernels_after)
    sides = [_steps(old, usual), _steps(new, usual)]
    if not all(sides):
        raise ValueError("a side has no step on a GPU to compare")
    unknown = _unknown([it for steps in sides for step in steps for it in step])
    before, after = (_rows(steps, unknown) for steps in sides)
    names = [name for name in BUCKETS if name not in unknown]
    means = [_mean_row(rows) for rows in (before, after)]
    sure = _intervals(before, after)
    buckets: dict[str, BucketDifference | None] = dict.fromkeys(BUCKETS)
    for column, name in enumerate(names):
        buckets[name] = BucketDifference(means[0][column], means[1][column], sure[column] if sure else None)
    window = BucketDifference(sum(means[0]), sum(means[1]), sure[-1] if sure else None)
    kernels = kernel_differences(kernels_before, kernels_after)
    host_parts, other_parts = (
        _parts(sides[0], sides[1], which) for which in ("host_parts_ns", "other_parts_ns")
    )
    calls = kernel_differences(calls_of(old.ranks.values()), calls_of(new.ranks.values()))
    told = conclusion(Changed(window, buckets, host_parts, other_parts, kernels, new.latecomer))
    return TraceDifference(
        window,
        buckets,
        {name: HELD_BY[name] for name in BUCKETS if name in unknown},
        host_parts,
        told.text,
        tuple(kernels[:_MOST_KERNELS]),
        (*_of_ranks(old, new), *old.degraded, *new.degraded),
        told.leading,
        other_parts,
        tuple(calls[:_MOST_KERNELS]),
    )


_Steps: TypeAlias = list[list[Buckets]]
"""Of each step of a side the buckets of all ranks that recorded it."""


def _steps(side: Breakdown, usual: Mapping[str, float]) -> _Steps:
    found: dict[object, list[Buckets]] = defaultdict(list)
    for rank in side.ranks.values():
        excess = longer_than_usual(rank.trace, usual) if usual else None
        for number, (step, window) in enumerate(zip(rank.steps, rank.windows, strict=True)):
            key = number if step.step is None else ("step", step.step)
            found[key].append(step if excess is None else inefficient(step, window, excess))
    return list(found.values())


def _unknown(steps: Sequence[Buckets]) -> set[str]:
    return {name for step in steps for name in BUCKETS if step.buckets_ns[name] is None}


def _of_ranks(old: Breakdown, new: Breakdown) -> Iterable[Degraded]:
    if old.ranks.keys() != new.ranks.keys():
        files = ", ".join(it.file for side in (old, new) for it in list(side.ranks.values())[:1])
        yield Degraded(files, "the two sides are not of the same ranks: what differs may be their roles")


@dataclass(frozen=True, slots=True)
class _Rows:
    """A row a step: the sum over its ranks of each bucket, and how many ranks those are."""

    sums: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def _rows(steps: _Steps, unknown: set[str]) -> _Rows:
    """Buckets that a side does not know are put into what holds them."""
    rows = []
    for step in steps:
        values = {name: sum(it.buckets_ns[name] or 0 for it in step) for name in BUCKETS}
        for name in unknown:
            values[HELD_BY[name]] += values.pop(name)
        rows.append([values[name] for name in BUCKETS if name not in unknown])
    return _Rows(np.array(rows, dtype=np.int64), np.array([len(step) for step in steps]))


def _mean_row(rows: _Rows) -> list[int]:
    """Whole nanoseconds that sum to the mean window: what rounding leaves goes where most was cut off."""
    sums, count = rows.sums.sum(axis=0), int(rows.counts.sum())
    whole, rest = np.divmod(sums, count)
    missing = int(sums.sum()) // count - int(whole.sum())
    for column in np.argsort(-rest, kind="stable")[:missing]:
        whole[column] += 1
    return [int(value) for value in whole]


def _intervals(before: _Rows, after: _Rows) -> list[tuple[int, int]] | None:
    """For each bucket, and last for the window, where the difference lies in 95 of 100 draws."""
    if min(len(before.sums), len(after.sums)) < _FEWEST_STEPS:
        return None
    draw = np.random.default_rng(_SEED)
    one, other = (_drawn(rows, draw) for rows in (before, after))
    wider = _few(one, other)
    low, high = np.percentile(other.off - one.off, (2.5, 97.5), axis=0) * wider + (other.mean - one.mean)
    return [(round(a), round(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The mean of each bucket, and last of the window; by how much drawn ones are off; of how many like."""

    mean: npt.NDArray[np.float64]
    off: npt.NDArray[np.float64]
    freedom: float


def _drawn(rows: _Rows, draw: np.random.Generator) -> _Drawn:
    """Means of steps drawn in runs of neighbours: what lasts for a few steps is no news in each of them.

    Runs of the square root of all: Künsch 1989. Drawn means differ less than those of other steps would by
    (n − run) / n, and how much they differ is known as well as of 1.5 n / run steps.
    """
    count = len(rows.sums)
    run = round(count**0.5)
    table = np.column_stack((rows.sums, rows.sums.sum(axis=1)))
    begins = draw.integers(0, count, (_DRAWS, -(-count // run)))
    drawn = ((begins[:, :, None] + np.arange(run)) % count).reshape(_DRAWS, -1)[:, :count]
    times = np.stack([np.bincount(each, minlength=count) for each in drawn])
    mean = table.sum(axis=0) / rows.counts.sum()
    off = (times @ table) / (times @ rows.counts)[:, None] - mean
    return _Drawn(mean, off * (count / (count - run)) ** 0.5, 1.5 * count / run - 1)


def _few(one: _Drawn, other: _Drawn) -> npt.NDArray[np.float64]:
    """By how much intervals of so few steps are wider than a normal distribution's: Student's t to that.

    Freedom by Welch 1947, the quantile by its expansion (Abramowitz and Stegun, 26.7.5).
    """
    z = 1.959964
    a, b = one.off.var(axis=0), other.off.var(axis=0)
    inverse = (a * a / one.freedom + b * b / other.freedom) / np.maximum((a + b) ** 2, 1e-9)
    wider: npt.NDArray[np.float64] = (
        1 + (z**2 + 1) * inverse / 4 + (5 * z**4 + 16 * z**2 + 3) * inverse**2 / 96
    )
    return wider


def _parts(old: _Steps, new: _Steps, which: str) -> dict[str, BucketDifference]:
    sides = [[it for step in steps for it in step] for steps in (old, new)]
    found = {}
    for name in getattr(sides[0][0], which):
        before, after = (sum(getattr(it, which)[name] for it in side) // len(side) for side in sides)
        found[name] = BucketDifference(before, after)
    return found
