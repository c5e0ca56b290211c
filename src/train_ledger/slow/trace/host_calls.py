"""Which calls does the host make of the GPU's driver in a step, how many, and how long do they take?"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from train_ledger.slow.trace.breakdown import RankBreakdown
from train_ledger.slow.trace.kernels import KernelTime
from train_ledger.slow.trace.reading.trace import Spans

__all__ = ["calls_of"]

_VERSION = re.compile(r"(?:_v\d{2,6}|_v\d|_pts[zd]|_spt)+$")


def calls_of(ranks: Iterable[RankBreakdown]) -> dict[str, KernelTime]:
    """Each kind of call (cudaLaunchKernel, cudaStreamSynchronize …) within the steps of these ranks."""
    counts: dict[str, int] = {}
    lengths: dict[str, int] = {}
    steps = 0
    for rank in ranks:
        steps += len(rank.steps)
        calls = _within_steps(rank)
        numbers, kinds, of_kind = np.unique(calls.name, return_inverse=True, return_counts=True)
        length = np.zeros(len(numbers), dtype=np.int64)
        np.add.at(length, kinds, calls.end - calls.start)
        for number, count, taken in zip(numbers.tolist(), of_kind.tolist(), length.tolist(), strict=True):
            name = _VERSION.sub("", rank.trace.names[number])
            counts[name] = counts.get(name, 0) + count
            lengths[name] = lengths.get(name, 0) + taken
    return {
        name: KernelTime(name, count / max(steps, 1), lengths[name] / count, is_compute=False)
        for name, count in counts.items()
    }


def _within_steps(rank: RankBreakdown) -> Spans:
    """The calls that were made within the host's marks of the steps; all where none are marked."""
    calls, wanted = rank.trace.launches, {it.step for it in rank.steps}
    marks = [(start, end) for number, start, end in rank.trace.steps if number in wanted]
    if not marks:
        return calls
    first, last = min(start for start, _ in marks), max(end for _, end in marks)
    return calls.only((calls.start >= first) & (calls.start < last))
