"""Which kernels, and how many, take how long in a step?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from train_ledger.slow.trace.breakdown import RankBreakdown
from train_ledger.slow.trace.reading.names import GpuClass

__all__ = ["KernelDifference", "KernelTime", "kernel_differences", "kernels_of", "normal_name"]

_TEMPLATE = re.compile(r"<[^<>]*>")
_ARGUMENTS = re.compile(r"\([^()]*\)\s*(?:\[clone [^\]]*\])?$")
_NCCL = re.compile(r"^nccl(?:Dev)?Kernel_?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KernelTime:
    """A kind of kernel: how often it runs in a step and how long one takes, in nanoseconds."""

    name: str
    per_step: float
    mean_ns: float
    is_compute: bool = True


@dataclass(frozen=True, slots=True)
class KernelDifference:
    """By how much a kind of kernel takes longer in a step: for running more often, and for running longer."""

    name: str
    old_ns: float
    new_ns: float
    by_count_ns: float
    by_length_ns: float
    is_compute: bool = True

    @property
    def diff_ns(self) -> float:
        return self.new_ns - self.old_ns


def normal_name(name: str) -> str:
    """A kernel's name without what differs from build to build: template arguments, hashes, numbers.

    >>> normal_name("void at::native::vectorized_kernel<4, at::native::Add<float>>(int, Add)")
    'at::native::vectorized_kernel'
    >>> normal_name("triton_poi_fused_add_12"), normal_name("ncclDevKernel_AllReduce_Sum_f32(ncclArgs)")
    ('triton_poi_fused_add', 'nccl AllReduce_Sum_f32')
    """
    text = name.removeprefix("void ")
    for _ in range(12):
        shorter = _TEMPLATE.sub("", text)
        if shorter == text:
            break
        text = shorter
    for _ in range(4):
        text = _ARGUMENTS.sub("", text).rstrip()
    if _NCCL.match(text):
        return "nccl " + _NCCL.sub("", text)
    return re.sub(r"(?:_\d+)+$", "", text) if text.startswith("triton") else text


def kernels_of(ranks: Iterable[RankBreakdown]) -> dict[str, KernelTime]:
    """Each kind of kernel in the steps of these ranks."""
    counts: dict[str, int] = defaultdict(int)
    lengths: dict[str, int] = defaultdict(int)
    computes: dict[str, bool] = {}
    steps = 0
    for rank in ranks:
        steps += len(rank.steps)
        start, end = _span(rank)
        gpu = rank.trace.gpu
        gpu = gpu.only((gpu.start >= start) & (gpu.start < end))
        numbers, kinds, of_kind = np.unique(gpu.name, return_inverse=True, return_counts=True)
        length = np.zeros(len(numbers), dtype=np.int64)
        np.add.at(length, kinds, gpu.end - gpu.start)
        others = np.zeros(len(numbers), dtype=np.int64)
        np.add.at(others, kinds, gpu.kind != GpuClass.COMPUTE)
        for place, number in enumerate(numbers.tolist()):
            name = normal_name(rank.trace.names[number])
            counts[name] += int(of_kind[place])
            lengths[name] += int(length[place])
            computes[name] = not others[place]
    return {
        name: KernelTime(name, counts[name] / max(steps, 1), lengths[name] / counts[name], computes[name])
        for name in counts
    }


def _span(rank: RankBreakdown) -> tuple[int, int]:
    if not rank.windows:
        return 0, 0
    return rank.windows[0].start, rank.windows[-1].end


def kernel_differences(old: dict[str, KernelTime], new: dict[str, KernelTime]) -> list[KernelDifference]:
    """All kinds of kernels, the largest difference first: old and new sum to the kernels' time in a step."""
    found = []
    for name in old.keys() | new.keys():
        before, after = old.get(name), new.get(name)
        count_old, mean_old = (before.per_step, before.mean_ns) if before else (0.0, 0.0)
        count_new, mean_new = (after.per_step, after.mean_ns) if after else (0.0, 0.0)
        if before and after:
            by_count, by_length = (count_new - count_old) * mean_old, count_new * (mean_new - mean_old)
        else:
            by_count, by_length = count_new * mean_new - count_old * mean_old, 0.0
        known = after or before
        found.append(
            KernelDifference(
                name, count_old * mean_old, count_new * mean_new, by_count, by_length,
                known.is_compute if known else True,
            )
        )  # fmt: skip
    return sorted(found, key=lambda it: (-abs(it.diff_ns), it.name))
