"""By how much do kernels take longer than the same kernels of the other trace?

The baseline of a kind of kernel is the side on which it is faster. Only kinds that run equally often on both
are compared: where their number differs their shapes may, too. The time above the baseline is taken from the
end of each kernel, so that what others do at the same time is counted once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from train_ledger.slow.trace.buckets import Buckets
from train_ledger.slow.trace.intervals import Intervals, clipped, length_ns, union
from train_ledger.slow.trace.kernels import KernelTime, normal_name
from train_ledger.slow.trace.reading.names import GpuClass
from train_ledger.slow.trace.reading.trace import Trace
from train_ledger.slow.trace.steps import Window

__all__ = ["inefficient", "longer_than_usual", "usual_lengths"]

_SAME_COUNT = 0.01
_NOISE = 0.02


def usual_lengths(old: Mapping[str, KernelTime], new: Mapping[str, KernelTime]) -> dict[str, float]:
    """The shorter mean of each kind of computation that both sides run equally often, in nanoseconds."""
    found = {}
    for name in old.keys() & new.keys():
        one, other = old[name], new[name]
        often = max(one.per_step, other.per_step)
        if one.is_compute and other.is_compute and abs(one.per_step - other.per_step) <= _SAME_COUNT * often:
            found[name] = min(one.mean_ns, other.mean_ns)
    return found


def longer_than_usual(trace: Trace, usual: Mapping[str, float]) -> Intervals:
    """When kernels of this trace ran although their like would have been done."""
    gpu = trace.gpu
    lengths = gpu.end - gpu.start
    excess = np.zeros(len(gpu), dtype=np.int64)
    by_kind: dict[str, list[int]] = {}
    for number in np.unique(gpu.name[gpu.kind == GpuClass.COMPUTE]).tolist():
        if (kind := normal_name(trace.names[number])) in usual:
            by_kind.setdefault(kind, []).append(number)
    for kind, numbers in by_kind.items():
        chosen = np.isin(gpu.name, numbers) & (gpu.kind == GpuClass.COMPUTE)
        share = 1 - usual[kind] / max(float(lengths[chosen].mean()), 1.0)
        if share > _NOISE:
            excess[chosen] = (lengths[chosen] * share).astype(np.int64)
    return union(gpu.end - excess, gpu.end)


def inefficient(step: Buckets, window: Window, excess: Intervals) -> Buckets:
    """The step with what its kernels took longer in `kernel_eff`, and no longer in `compute`."""
    computed = step.buckets_ns["compute"] or 0
    taken = min(length_ns(clipped(excess, window.start, window.end)), computed)
    return replace(step, buckets_ns={**step.buckets_ns, "compute": computed - taken, "kernel_eff": taken})
