"""The training thread's price of a line, held to the limits with the same loop that bench/ prints.

The machine that runs the tests has two cores and other work: each limit has to hold in one of three runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

_FILE = Path(__file__).parents[2] / "bench" / "log_latency.py"
_CALLS = 1500


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("log_latency", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_one_of_three(held: Callable[[], bool]) -> bool:
    return any(held() for _ in range(3))


def test_a_healthy_file(bench: ModuleType) -> None:
    def held() -> bool:
        result = bench.healthy(_CALLS)
        assert result.dropped == 0
        return bool(result.p50 <= 10 and result.p99 <= 50 and result.p999 <= 1000)

    assert in_one_of_three(held)


@pytest.mark.parametrize("sink", ["blocked", "fifo", "read_only", "full"])
def test_a_file_that_takes_nothing_is_no_slower(bench: ModuleType, sink: str) -> None:
    def held() -> bool:
        healthy, bad, without = bench.healthy(_CALLS), getattr(bench, sink)(_CALLS), bench.without(_CALLS)
        if bad is None:
            pytest.skip("mounting a tmpfs needs root")
        # Twice the healthy distribution, but never below what the machine itself does to a call.
        twice = [2 * max(of_healthy, 5.0) for of_healthy in healthy[1:4]]
        noise_us = max(without.longest, 5000.0)
        within = all(figure <= limit for figure, limit in zip(bad[1:4], twice, strict=True))
        return within and bad.longest <= noise_us

    assert in_one_of_three(held)
