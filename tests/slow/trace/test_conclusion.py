"""The sentence under the table is what the table shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from train_ledger.slow.trace.buckets import BUCKETS, HOST_PARTS, OTHER_PARTS
from train_ledger.slow.trace.conclusion import BucketDifference, Changed, conclusion
from train_ledger.slow.trace.kernels import KernelDifference

MS = 1_000_000
SOME = KernelDifference("gemm", 1.0, 2.0, 0.0, 1.0)


def changed(
    latecomer: int | None = None, part: str = "", kernels: Sequence[KernelDifference] = (SOME,), **by_ms: int
) -> Changed:
    """Steps of 100 ms of computation and what else each bucket has, which then changes by so much."""
    buckets = {name: BucketDifference(100 * MS, (100 + by_ms.get(name, 0)) * MS) for name in BUCKETS}
    window = BucketDifference(*(sum(getattr(it, side) for it in buckets.values()) for side in ("old", "new")))
    most = max(by_ms.values(), default=0) * MS
    hosts, others = (
        {name: BucketDifference(0, most if name == part else 0) for name in names}
        for names in ((*HOST_PARTS, "dispatch"), OTHER_PARTS)
    )
    return Changed(window, buckets, hosts, others, kernels, latecomer)


@pytest.mark.parametrize(
    ("bucket", "part", "words"),
    [
        ("bubble", "", "stages are out of balance"),
        ("comm_exposed", "", "the network"),
        ("recompute", "", "activation checkpointing changed"),
        ("data_wait", "", "waits for data"),
        ("straggler", "", "wait longer for a rank"),
        ("cpu_launch", "allocator", "num_alloc_retries"),
        ("cpu_launch", "sync", ".item()"),
        ("cpu_launch", "checkpoint", "saving a checkpoint"),
        ("cpu_launch", "gc", "garbage collection"),
        ("cpu_launch", "dispatch", "slower work between launches"),
        ("other", "copies", "copies that nothing hides"),
        ("other", "dependency", "streams wait longer for each other"),
        ("other", "kernel_gaps", "moments between kernels"),
        ("other", "graph", "launched graph"),
        ("other", "unexplained", "does not tell the cause"),
    ],
)
def test_one_bucket_at_a_time_is_named_with_what_it_means(bucket: str, part: str, words: str) -> None:
    found = conclusion(changed(part=part, **{bucket: 90}))
    assert found.leading == bucket
    assert found.text.startswith(f"steps are 90.0 ms (10%) longer, 100% of it in {bucket}: ")
    assert words in found.text


def test_what_takes_less_time_is_named_too() -> None:
    found = conclusion(changed(data_wait=-90))
    assert found.text == (
        "steps are 90.0 ms (10%) shorter, 100% of it in data_wait: waiting for data takes less time"
    )


def test_many_small_changes_have_no_single_cause() -> None:
    found = conclusion(changed(compute=20, bubble=20, data_wait=20, other=20))
    assert found.leading is None
    assert found.text.endswith("no single cause")


def test_a_late_rank_that_computes_longer_is_named_and_not_its_kernels() -> None:
    found = conclusion(changed(latecomer=5, compute=50, straggler=50))
    assert found.text.endswith("wait longer for a rank that comes late, rank 5")
    assert conclusion(changed(compute=60, straggler=50)).leading == "compute", "nobody is known to come late"


def of_kernels(*by_length: float) -> str:
    """What is said of kernels of 100 ns a step each, which become longer by so much."""
    kernels = [KernelDifference(f"k{it:.0f}", 100, 100 + it, 0, it) for it in by_length]
    return conclusion(changed(kernel_eff=90, kernels=sorted(kernels, key=lambda it: -abs(it.diff_ns)))).text


def test_clocks_are_suspected_where_all_kernels_take_longer_and_not_where_one_does() -> None:
    assert of_kernels(30, 32, 28, 2, 31, 30).endswith("clocks (heat, power), or another card")
    assert of_kernels(90, 1, 1, 1, 1, 1).endswith("some kernels take longer, most of all k90")
    assert of_kernels(-95, 90, 60, 2).endswith("most of all k90"), "and not what became shorter"


def test_waiting_for_a_late_rank_is_not_ruled_out_by_the_trace_of_one() -> None:
    one = changed(comm_exposed=90)
    assert "late" not in conclusion(one).text
    told = conclusion(replace(one, buckets={**one.buckets, "straggler": None})).text
    assert told.endswith("or a rank that comes late: traces of all ranks, taken at once, tell")
