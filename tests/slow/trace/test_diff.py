"""The differences add up, and the conclusion is what the table shows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from slow.trace.traces import Event, host, kernel, launch, step, write
from train_ledger.slow.trace.breakdown import Breakdown, breakdown
from train_ledger.slow.trace.diff import TraceDifference, trace_difference

NCCL = "ncclDevKernel_AllReduce_Sum_bf16"


def job(
    path: Path, *, steps: int = 7, compute_us: float = 500, comm_us: float = 50, data_us: float = 0,
    late_us: float = 0, noise_us: float = 1, kernels: int = 1, lates_us: Sequence[float] = (),
) -> Breakdown:  # fmt: skip
    """Steps that compute, communicate and launch the next one in time, or later by `late_us` or `data_us`.

    `lates_us` are, one a step, in the place of `noise_us`.
    """
    events: list[Event] = []
    t = 100.0
    for number in range(steps):
        begin = t
        t += lates_us[number] if lates_us else noise_us * (number % 3)
        if data_us:
            events.append(host("DataLoader.__next__", t, t + data_us))
            t += data_us
        t += late_us
        events.append(launch(t, t + 1, 10 * number))
        t += 5
        for part in range(kernels):
            events.append(kernel(t, t + compute_us / kernels, "gemm" if part == 0 else "other", 10 * number))
            t += compute_us / kernels
        events.append(launch(begin + late_us + data_us + 6, begin + late_us + data_us + 7, 10 * number + 1))
        events.append(kernel(t, t + comm_us, NCCL, 10 * number + 1))
        t += comm_us
        events.append(step(number, begin, t))
    return breakdown([write(path, *events)])


def differ(tmp_path: Path, **changes: float) -> TraceDifference:
    found = trace_difference(job(tmp_path / "old.json"), job(tmp_path / "new.json", **changes))  # type: ignore[arg-type]
    assert sum(it.diff for it in found.buckets.values() if it) == found.window.diff
    return found


@pytest.mark.parametrize(
    ("changes", "bucket", "words"),
    [
        ({"data_us": 300}, "data_wait", "waits for data"),
        ({"comm_us": 400}, "comm_exposed", "the network"),
        ({"compute_us": 900}, "kernel_eff", "all kernels take longer"),
        ({"late_us": 300}, "cpu_launch", "waits for the host"),
    ],
)
def test_one_cause(tmp_path: Path, changes: dict[str, float], bucket: str, words: str) -> None:
    found = differ(tmp_path, **changes)
    most = max((it.diff, name) for name, it in found.buckets.items() if it)
    assert most[1] == bucket
    assert words in found.conclusion
    told = found.buckets[bucket]
    assert told is not None
    assert told.ci95 is not None
    assert told.ci95[0] > 0, "seven steps a side are enough to be sure of it"


def test_nothing_changed(tmp_path: Path) -> None:
    assert differ(tmp_path).conclusion == "the step did not change by more than steps differ anyway"


def test_more_kernels(tmp_path: Path) -> None:
    found = differ(tmp_path, kernels=2, compute_us=1000)
    assert found.conclusion.endswith("more kernels run than before, most of all other")
    assert found.kernels[0].name == "other"


def test_of_few_steps_nothing_is_sure(tmp_path: Path) -> None:
    found = trace_difference(job(tmp_path / "old.json", steps=4), job(tmp_path / "new.json", comm_us=300))
    assert found.window.ci95 is None
    assert found.kernels[0].by_length_ns == pytest.approx(250_000, rel=1e-6)


def _sure(folder: Path, sides: Sequence[Sequence[float]]) -> float:
    """Half the interval in standard errors, as they are where steps have nothing to do with each other."""
    old, new = (
        job(folder / f"{name}.json", steps=len(it), lates_us=it) for name, it in zip("ab", sides, strict=True)
    )
    lengths = [[it.window_ns for it in side.ranks[0].steps] for side in (old, new)]
    error = sum(statistics.variance(it) / len(it) for it in lengths) ** 0.5
    low, high = trace_difference(old, new).window.ci95 or (0, 0)
    return (high - low) / 2 / error


def test_few_steps_make_less_sure_than_many(tmp_path: Path) -> None:
    """Of five steps a side 95 of 100 lie within 2.31 standard errors (Student's t), of many within 1.96."""
    draw = Random(7)
    some = [_sure(tmp_path, [[draw.gauss(100, 10) for _ in range(6)] for _ in "ab"]) for _ in range(12)]
    assert 2.1 < statistics.fmean(some) < 3.0
    many = [_sure(tmp_path, [[draw.gauss(100, 10) for _ in range(60)] for _ in "ab"]) for _ in range(3)]
    assert 1.6 < statistics.fmean(many) < 2.6


def test_what_lasts_for_several_steps_is_not_counted_as_news_in_each(tmp_path: Path) -> None:
    draw = Random(7)
    levels = [[100 + 20 * (draw.random() < 0.5) for _ in range(12)] for _ in "ab"]
    lasting = [[level for level in side for _ in range(4)] for side in levels]
    assert _sure(tmp_path, lasting) > 1.4 * 1.96


def test_sides_that_know_different_buckets_are_compared_in_what_both_know(tmp_path: Path) -> None:
    old = job(tmp_path / "old.json")
    new = job(tmp_path / "new.json")
    found = trace_difference(old, new)
    assert found.buckets["straggler"] is None
    assert found.held_by["straggler"] == "comm_exposed"


def test_a_side_without_steps(tmp_path: Path) -> None:
    empty = breakdown([write(tmp_path / "none.json")])
    with pytest.raises(ValueError, match="no step"):
        trace_difference(empty, job(tmp_path / "new.json"))


def test_kernels_that_take_longer_are_told_apart_from_more_of_them(tmp_path: Path) -> None:
    slower = differ(tmp_path, compute_us=600).buckets["kernel_eff"]
    assert slower is not None
    assert (slower.old, slower.new) == (0, pytest.approx(100_000, abs=2))
    more = differ(tmp_path, kernels=2, compute_us=1000)
    assert more.buckets["kernel_eff"] is None or more.buckets["kernel_eff"].diff == 0
    assert more.buckets["compute"] is not None
    assert more.buckets["compute"].diff == 500_000


def test_many_ranks_make_no_more_steps(tmp_path: Path) -> None:
    paths = []
    for rank in range(8):
        job(tmp_path / f"rank{rank}.json", steps=4)
        paths.append(tmp_path / f"rank{rank}.json")
        text = paths[-1].read_text().replace('"rank": 0', f'"rank": {rank}')
        paths[-1].write_text(text)
    side = breakdown(paths)
    assert sum(len(it.steps) for it in side.ranks.values()) == 24
    found = trace_difference(side, side)
    assert found.window.ci95 is None, "three steps of eight ranks are three steps"
    other = trace_difference(breakdown(paths[:4]), side)
    assert any("not of the same ranks" in it.why for it in other.degraded)


def test_calls_of_the_host_that_are_new_are_listed(tmp_path: Path) -> None:
    def side(name: str, allocations: int) -> Breakdown:
        events: list[Event] = []
        for number in range(6):
            at = 1000.0 * number
            events += [step(number, at, at + 999), launch(at + 1, at + 2, number), kernel(at + 9, at + 900)]
            events[-1]["args"]["correlation"] = number
            events += [
                launch(at + 10 + it, at + 10.5 + it, 5000, "cudaMalloc_v2") for it in range(allocations)
            ]
        return breakdown([write(tmp_path / name, *events)])

    found = trace_difference(side("old.json", 0), side("new.json", 3))
    [most, *_] = found.calls
    assert (most.name, most.old_ns, most.new_ns, most.by_count_ns) == ("cudaMalloc", 0.0, 1500.0, 1500.0)
