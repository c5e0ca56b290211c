"""The bubble of a made 1F1B pipeline is that of the theory."""

from __future__ import annotations

from pathlib import Path

import pytest

from slow.trace.traces import Event, kernel, launch, step, write
from train_ledger.slow.trace.breakdown import Options, RankBreakdown, breakdown
from train_ledger.slow.trace.pipeline import Schedule

FORWARD_US, BACKWARD_US, TRANSFER_US = 1000.0, 2000.0, 5.0
Ran = tuple[str, int, float, float]
"""What ran in which step, from when to when."""


def one_forward_one_backward(stages: int, batches: int, steps: int) -> list[list[Ran]]:
    """What each stage runs, one thing after the other, each as soon as what it needs has come."""
    orders = []
    for stage in range(stages):
        ahead = min(stages - stage - 1, batches)
        order = [("F", number) for number in range(ahead)]
        for number in range(batches - ahead):
            order += [("F", ahead + number), ("B", number)]
        orders.append(order + [("B", number) for number in range(batches - ahead, batches)])
    left = [[(number, *it) for number in range(steps) for it in order] for order in orders]
    done: dict[tuple[int, str, int, int], float] = {}
    free_at, ran = [0.0] * stages, [list[Ran]() for _ in range(stages)]
    while any(left):
        for stage in range(stages):
            while left[stage]:
                number, what, batch = left[stage][0]
                source = stage - 1 if what == "F" else stage + 1
                needs = (number, what, batch, source)
                if 0 <= source < stages:
                    if needs not in done:
                        break
                    arrived = max(done[needs], free_at[stage]) + TRANSFER_US
                    ran[stage].append(("R", number, free_at[stage], arrived))
                    free_at[stage] = arrived
                end = free_at[stage] + (FORWARD_US if what == "F" else BACKWARD_US)
                ran[stage].append((what, number, free_at[stage], end))
                free_at[stage] = done[number, what, batch, stage] = end
                left[stage].pop(0)
    return ran


def broken_down(tmp_path: Path, stages: int, batches: int, stage: int = 0) -> RankBreakdown:
    told = {"Collective name": "recv", "Process Group Description": "pp", "In msg nelems": 64}
    events: list[Event] = []
    marked: set[int] = set()
    for number, (what, of_step, start, end) in enumerate(one_forward_one_backward(stages, batches, 4)[stage]):
        if of_step not in marked:
            marked.add(of_step)
            begin = start - 60
            events.append(step(of_step, begin, begin + 50))
        at = begin + 0.01 * number
        events.append(launch(at, at + 0.005, number + 1))
        more = ("ncclDevKernel_SendRecv", number + 1, told) if what == "R" else ("gemm", number + 1, {})
        events.append(kernel(start, end, more[0], more[1], **more[2]))
    options = Options(schedule=Schedule(stages, batches))
    return breakdown([write(tmp_path / f"{stage}.json", *events, world_size=stages)], options).ranks[0]


@pytest.mark.parametrize(("stages", "batches"), [(1, 4), (4, 8), (4, 16), (8, 32)])
def test_as_the_theory_of_1f1b_says(tmp_path: Path, stages: int, batches: int) -> None:
    found = broken_down(tmp_path, stages, batches)
    bubble = found.total.buckets_ns["bubble"]
    assert bubble is not None
    assert bubble / found.total.window_ns == pytest.approx((stages - 1) / (batches + stages - 1), abs=0.002)


def test_where_all_receives_wait_it_is_less_and_never_more(tmp_path: Path) -> None:
    excess = broken_down(tmp_path, 4, 4).bubble_excess_ns
    assert excess is not None
    assert excess < 0, "what a transfer takes cannot be told, and stays in the communication"
