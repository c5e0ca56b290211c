"""Where nobody marked the steps, the kernels that repeat tell them, or nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from slow.trace.traces import Event, kernel, write
from train_ledger.slow.trace.breakdown import breakdown
from train_ledger.slow.trace.period import period_starts
from train_ledger.slow.trace.reading.trace import read_trace

LAYER = ["norm", "gemm", "softmax", "gemm"]
STEP = ["embed", *LAYER * 3, "loss", *[f"{name}_backward" for name in reversed(LAYER)] * 3, "adam", "adam"]


def run_of(*steps: list[str], pause_us: float = 100) -> list[Event]:
    """The kernels of each step one behind the other, and a pause behind the step."""
    events, t = [], 0.0
    for step in steps:
        for name in step:
            events.append(kernel(t, t + 9, name))
            t += 10
        t += pause_us
    return events


def starts_us(tmp_path: Path, *events: Event) -> list[float]:
    return [it / 1000 for it in period_starts(read_trace(write(tmp_path / "t.json", *events)))]


def test_a_step_of_many_layers_is_the_step_and_no_layer(tmp_path: Path) -> None:
    length = 10 * len(STEP) + 100
    assert starts_us(tmp_path, *run_of(*[STEP] * 6)) == [length * number for number in range(6)]


def test_micro_batches_are_no_steps(tmp_path: Path) -> None:
    step = ["embed", *LAYER * 3, "loss"] * 4 + ["adam"]
    length = 10 * len(step) + 100
    assert starts_us(tmp_path, *run_of(*[step] * 5)) == [length * number for number in range(5)]


def test_a_step_begins_behind_the_longest_pause_wherever_the_recording_began(tmp_path: Path) -> None:
    first = run_of(STEP)[7:]
    rest = [{**it, "ts": it["ts"] + 10 * len(STEP) + 100} for it in run_of(*[STEP] * 6)]
    assert starts_us(tmp_path, *first, *rest)[0] == 10 * len(STEP) + 100


@pytest.mark.parametrize(
    "steps",
    [
        [["gemm"] * 20] * 6,
        [STEP] * 4,
        [[f"kernel_{number * 100 + place}" for place in range(20)] for number in range(6)],
        [],
    ],
    ids=["all alike", "too few", "nothing repeats", "nothing"],
)
def test_nothing_is_guessed(tmp_path: Path, steps: list[list[str]]) -> None:
    assert starts_us(tmp_path, *run_of(*steps)) == []


def test_a_breakdown_by_periods_says_so_and_leaves_the_last_out(tmp_path: Path) -> None:
    found = breakdown([write(tmp_path / "t.json", *run_of(*[STEP] * 6))])
    rank = found.ranks[0]
    assert [it.step for it in rank.steps] == [0, 1, 2, 3, 4]
    assert {it.buckets_ns["compute"] for it in rank.steps} == {9000 * len(STEP)}
    assert "what its kernels repeat is taken for a step" in found.degraded[0].why
