"""What would a person say of the table of two traces' buckets?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from train_ledger.slow.trace.kernels import KernelDifference

__all__ = ["BucketDifference", "Changed", "Conclusion", "conclusion"]

_SAME_SHARE = 0.01
_LEADING_SHARE = 0.4
_WELL_MATCHED = 0.8
_ABOUT_AS_MUCH = 0.5


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
class Changed:
    """The table, what its `cpu_launch` and "other" are made of, the kernels, and who comes late now."""

    window: BucketDifference
    buckets: Mapping[str, BucketDifference | None]
    host_parts: Mapping[str, BucketDifference]
    other_parts: Mapping[str, BucketDifference]
    kernels: Sequence[KernelDifference]
    latecomer: int | None = None


class Conclusion(NamedTuple):
    """A sentence, and the bucket that it names; None where it names none."""

    text: str
    leading: str | None = None


_MEANINGS = {
    "bubble": "the pipeline idles longer: stages are out of balance, or there are fewer micro-batches",
    "comm_exposed": "communication takes longer while kernels do not: the network, or its overlap was lost",
    "recompute": "more is computed again in the backward pass: activation checkpointing changed",
    "data_wait": "the GPU waits for data: loader, storage or pre-processing became slower",
    "straggler": "collectives wait longer for a rank that comes late",
}
_HOST_MEANINGS = {
    "allocator": "cudaMalloc and cudaFree: memory is fragmented; see num_alloc_retries",
    "sync": "waiting for the GPU, as .item() or logging does; without it the wait may move elsewhere",
    "checkpoint": "saving a checkpoint",
    "gc": "garbage collection",
    "dispatch": "Python and dispatch: more or slower work between launches (logging, locks, a busy core)",
}
_OTHER_MEANINGS = {
    "copies": "copies that nothing hides take longer: of what is offloaded, logged or moved between devices",
    "dependency": "streams wait longer for each other: what ran beside each other now runs in turn",
    "kernel_gaps": "there are more moments between kernels: more and smaller ones run",
    "graph": "of what a launched graph does more is not recorded: the trace cannot tell the cause",
    "unexplained": "idle time of the GPU of which this trace does not tell the cause",
}
_ARE = {
    "compute": "computation",
    "bubble": "waiting for another stage of the pipeline",
    "comm_exposed": "communication that nothing hides",
    "recompute": "computing again in the backward pass",
    "data_wait": "waiting for data",
    "kernel_eff": "running the same kernels",
    "cpu_launch": "waiting for the host",
    "straggler": "waiting for a rank that comes late",
    "other": "what is told as other",
}


def conclusion(changed: Changed) -> Conclusion:
    """By how much the step changed, and in what most of it."""
    window = changed.window
    if abs(window.diff) < _SAME_SHARE * max(window.old, 1) or (
        window.ci95 is not None and window.ci95[0] <= 0 <= window.ci95[1]
    ):
        return Conclusion("the step did not change by more than steps differ anyway")
    name, share = _leading(changed)
    word = "longer" if window.diff > 0 else "shorter"
    by = f"{abs(window.diff) / 1e6:,.1f} ms ({abs(window.diff) / max(window.old, 1):.0%})"
    head = f"steps are {by} {word}, {share:.0%} of it in {name}"
    if share < _LEADING_SHARE:
        return Conclusion(f"{head}: no single cause")
    if window.diff < 0:
        return Conclusion(f"{head}: {_ARE[name]} takes less time", name)
    return Conclusion(f"{head}: {_meaning(name, changed)}", name)


def _leading(changed: Changed) -> tuple[str, float]:
    """The bucket that changed most in the step's direction, and its part of the change.

    A rank that comes late computes longer while the others wait: where it is known, the waiting is told.
    """
    sign = 1 if changed.window.diff > 0 else -1
    moved = {name: it.diff * sign for name, it in changed.buckets.items() if it is not None}
    name = max(moved, key=lambda one: moved[one])
    whole = abs(changed.window.diff)
    if changed.latecomer is not None and sign > 0 and moved.get("straggler", 0) >= _LEADING_SHARE * whole:
        name = "straggler"
    return name, moved[name] / whole


def _meaning(name: str, changed: Changed) -> str:
    if name == "cpu_launch":
        return f"the GPU waits for the host – {_HOST_MEANINGS[_most(changed.host_parts)]}"
    if name == "other":
        return _OTHER_MEANINGS[_most(changed.other_parts)]
    if name in ("compute", "kernel_eff"):
        return _of_kernels([it for it in changed.kernels if it.is_compute])
    if name == "comm_exposed" and changed.buckets.get("straggler") is None:
        return f"{_MEANINGS[name]}, or a rank that comes late: traces of all ranks, taken at once, tell"
    if name == "straggler" and changed.latecomer is not None:
        return f"{_MEANINGS[name]}, rank {changed.latecomer}"
    return _MEANINGS[name]


def _most(parts: Mapping[str, BucketDifference]) -> str:
    return max(parts, key=lambda name: parts[name].diff)


def _of_kernels(kernels: Sequence[KernelDifference]) -> str:
    longer = sum(it.by_length_ns for it in kernels)
    more = sum(it.by_count_ns for it in kernels)
    if longer <= more:
        most = max(kernels, key=lambda it: it.by_count_ns, default=None)
        return f"more kernels run than before, most of all {most.name if most else 'unnamed ones'}"
    if _all_alike(kernels, longer):
        return "all kernels take longer: clocks (heat, power), or another card"
    return f"some kernels take longer, most of all {max(kernels, key=lambda it: it.by_length_ns).name}"


def _all_alike(kernels: Sequence[KernelDifference], longer: float) -> bool:
    """Whether nearly all of the time is of kernels that became longer by about the same part: of clocks."""
    on_both = [it for it in kernels if it.old_ns and it.new_ns]
    known = sum(it.old_ns for it in on_both)
    if not known:
        return False
    usual = longer / known
    alike = sum(it.old_ns for it in on_both if it.by_length_ns >= _ABOUT_AS_MUCH * usual * it.old_ns)
    return alike >= _WELL_MATCHED * known
