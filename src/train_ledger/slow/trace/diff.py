"""What changed between two traces of the same training?

Both are broken down into the same buckets; the differences of the mean steps add up to the difference of
their lengths to the nanosecond. How sure they are is told from five steps a side on, by drawing steps at
random; of fewer the kernels alone are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from train_ledger.slow.trace.breakdown import Breakdown, Degraded
from train_ledger.slow.trace.buckets import BUCKETS, HELD_BY, Buckets
from train_ledger.slow.trace.kernels import KernelDifference, kernel_differences, kernels_of

__all__ = ["BucketDifference", "TraceDifference", "trace_difference"]

_FEWEST_STEPS = 5
_DRAWS = 2000
_SEED = 20_261_130
_MOST_KERNELS = 20
_SAME_SHARE = 0.01
_LEADING_SHARE = 0.4
_WELL_MATCHED = 0.8


@dataclass(frozen=True, slots=True)
class BucketDifference:
    """Nanoseconds of the mean step; `ci95` is None where too few steps are there to tell."""

    old: int
    new: int
    ci95: tuple[int, int] | None = None

    @property
    def diff(self) -> int:
        return self.new - self.old


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """`buckets` are None where one side cannot tell them; their time is in that of `held_by`, on both."""

    window: BucketDifference
    buckets: Mapping[str, BucketDifference | None]
    held_by: Mapping[str, str]
    host_parts: Mapping[str, BucketDifference]
    conclusion: str
    kernels: tuple[KernelDifference, ...]
    degraded: tuple[Degraded, ...]


def trace_difference(old: Breakdown, new: Breakdown) -> TraceDifference:
    """Compare the mean step of all ranks of one breakdown with that of another.

    Raises ValueError where a side has no step.
    """
    sides = [_steps(old), _steps(new)]
    if not all(sides):
        raise ValueError("a side has no step on a GPU to compare")
    unknown = {name for steps in sides for step in steps for name in BUCKETS if step.buckets_ns[name] is None}
    before, after = (_rows(steps, unknown) for steps in sides)
    names = [name for name in BUCKETS if name not in unknown]
    means = [_mean_row(rows) for rows in (before, after)]
    sure = _intervals(before, after)
    buckets: dict[str, BucketDifference | None] = dict.fromkeys(BUCKETS)
    for column, name in enumerate(names):
        buckets[name] = BucketDifference(means[0][column], means[1][column], sure[column] if sure else None)
    window = BucketDifference(sum(means[0]), sum(means[1]), sure[-1] if sure else None)
    kernels = kernel_differences(kernels_of(old.ranks.values()), kernels_of(new.ranks.values()))
    parts = _host_parts(*sides)
    return TraceDifference(
        window,
        buckets,
        {name: HELD_BY[name] for name in BUCKETS if name in unknown},
        parts,
        _conclusion(window, buckets, parts, kernels),
        tuple(kernels[:_MOST_KERNELS]),
        (*old.degraded, *new.degraded),
    )


def _steps(side: Breakdown) -> list[Buckets]:
    return [step for rank in side.ranks.values() for step in rank.steps]


def _rows(steps: Sequence[Buckets], unknown: set[str]) -> npt.NDArray[np.int64]:
    """A row a step: its buckets, those that a side does not know put into what holds them."""
    rows = []
    for step in steps:
        values = {name: step.buckets_ns[name] or 0 for name in BUCKETS}
        for name in unknown:
            values[HELD_BY[name]] += values.pop(name)
        rows.append([values[name] for name in BUCKETS if name not in unknown])
    return np.array(rows, dtype=np.int64)


def _mean_row(rows: npt.NDArray[np.int64]) -> list[int]:
    """Whole nanoseconds that sum to the mean window: what rounding leaves goes where most was cut off."""
    sums = rows.sum(axis=0)
    whole, rest = np.divmod(sums, len(rows))
    missing = int(sums.sum()) // len(rows) - int(whole.sum())
    for column in np.argsort(-rest, kind="stable")[:missing]:
        whole[column] += 1
    return [int(value) for value in whole]


def _intervals(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> list[tuple[int, int]] | None:
    """For each bucket, and last for the window, where the difference lies in 95 of 100 draws."""
    if min(len(before), len(after)) < _FEWEST_STEPS:
        return None
    draw = np.random.default_rng(_SEED)
    means = [
        np.column_stack((rows, rows.sum(axis=1)))[draw.integers(0, len(rows), (_DRAWS, len(rows)))].mean(
            axis=1
        )
        for rows in (before, after)
    ]
    low, high = np.percentile(means[1] - means[0], (2.5, 97.5), axis=0)
    return [(round(a), round(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def _host_parts(old: Sequence[Buckets], new: Sequence[Buckets]) -> dict[str, BucketDifference]:
    names = old[0].host_parts_ns
    return {
        name: BucketDifference(
            sum(step.host_parts_ns[name] for step in old) // len(old),
            sum(step.host_parts_ns[name] for step in new) // len(new),
        )
        for name in names
    }


_MEANINGS = {
    "bubble": "the pipeline idles longer: stages are out of balance, or there are fewer micro-batches",
    "comm_exposed": "communication takes longer while kernels do not: the network, or its overlap was lost",
    "recompute": "more is computed again in the backward pass: activation checkpointing changed",
    "data_wait": "the GPU waits for data: loader, storage or pre-processing became slower",
    "kernel_eff": "the same kernels take longer: clocks (heat, power), or memory errors",
    "straggler": "collectives wait longer for a rank that comes late",
    "other": "idle time of the GPU of which this trace does not tell the cause",
}
_HOST_MEANINGS = {
    "allocator": "cudaMalloc and cudaFree: memory is fragmented; see num_alloc_retries",
    "sync": "waiting for the GPU, as .item() or logging a tensor does",
    "checkpoint": "saving a checkpoint",
    "gc": "garbage collection",
    "dispatch": "Python and dispatch: more or slower work between launches (logging, locks, a busy core)",
}


def _conclusion(
    window: BucketDifference,
    buckets: Mapping[str, BucketDifference | None],
    parts: Mapping[str, BucketDifference],
    kernels: Sequence[KernelDifference],
) -> str:
    """What a person would say of the table."""
    if abs(window.diff) < _SAME_SHARE * max(window.old, 1) or (
        window.ci95 is not None and window.ci95[0] <= 0 <= window.ci95[1]
    ):
        return "the step did not change by more than steps differ anyway"
    sign = 1 if window.diff > 0 else -1
    changed = {name: it for name, it in buckets.items() if it is not None and it.diff * sign > 0}
    name, most = max(changed.items(), key=lambda item: abs(item[1].diff))
    share = abs(most.diff) / abs(window.diff)
    word = "longer" if sign > 0 else "shorter"
    head = f"steps are {abs(window.diff) / 1e6:,.1f} ms {word}, {share:.0%} of it in {name}"
    if share < _LEADING_SHARE:
        return f"{head}: no single cause"
    if sign < 0:
        return head
    return f"{head}: {_meaning(name, parts, kernels)}"


def _meaning(name: str, parts: Mapping[str, BucketDifference], kernels: Sequence[KernelDifference]) -> str:
    if name == "cpu_launch":
        part, _ = max(parts.items(), key=lambda item: item[1].diff)
        return f"the GPU waits for the host – {_HOST_MEANINGS[part]}"
    if name == "compute":
        return _of_kernels([it for it in kernels if it.is_compute])
    return _MEANINGS[name]


def _of_kernels(kernels: Sequence[KernelDifference]) -> str:
    longer = sum(it.by_length_ns for it in kernels)
    more = sum(it.by_count_ns for it in kernels)
    if longer > more:
        slower = sum(it.old_ns for it in kernels if it.by_length_ns > 0)
        known = sum(it.old_ns for it in kernels if it.new_ns)
        if known and slower >= _WELL_MATCHED * known:
            return "all kernels take longer: clocks (heat, power), or another card"
        return f"some kernels take longer, most of all {kernels[0].name}"
    return f"more kernels run than before, most of all {kernels[0].name}"
