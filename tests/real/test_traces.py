"""Real traces give the reference figures: whole microseconds exactly, nanoseconds to a hundred-thousandth."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.slow.trace.activity import activity
from train_ledger.slow.trace.reading.trace import read_trace

TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the shared traces are not here")


@pytest.mark.parametrize(
    ("name", "span_us", "compute_us", "idle_us", "other_us", "overlap_percent"),
    [
        ("negative_queue_rank0", 1016554, 143836, 705853, 166865, 1.37),
        ("control", 383404, 234760, 62119, 86525, 47.03),
    ],
)
def test_whole_microseconds_exactly(
    name: str, span_us: int, compute_us: int, idle_us: int, other_us: int, overlap_percent: float
) -> None:
    found = activity(read_trace(TRACES / f"{name}.json.gz"))
    assert (found.span_ns, found.compute_ns, found.idle_ns) == (
        span_us * 1000,
        compute_us * 1000,
        idle_us * 1000,
    )
    assert found.comm_exposed_ns + found.memory_ns == other_us * 1000
    assert found.overlap_percent == pytest.approx(overlap_percent, abs=0.005)


@pytest.mark.parametrize(("name", "compute_us"), [("nccl_data", 76935.8), ("h100_qwen", 45432.7)])
def test_nanoseconds(name: str, compute_us: float) -> None:
    assert activity(read_trace(TRACES / f"{name}.json.gz")).compute_ns == pytest.approx(
        compute_us * 1000, rel=1e-5
    )
