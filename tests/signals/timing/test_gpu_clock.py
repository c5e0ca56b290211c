"""GPU times by events that are asked and never waited for; a stand-in for torch.cuda is all we have here."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from train_ledger.signals.timing.gpu_clock import GpuClock


class Cuda:
    """torch.cuda as far as it is used; `now_ms` is the time at which the GPU records the next event."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.finished_ms = 0.0
        self.capturing = False
        self.broken = False
        self.made = 0
        outer = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing
                outer.made += 1

            def record(self) -> None:
                if outer.broken:
                    raise RuntimeError("CUDA error: an illegal memory access was encountered")
                self.at = outer.now_ms

            def query(self) -> bool:
                if outer.broken:
                    raise RuntimeError("CUDA error: an illegal memory access was encountered")
                return self.at <= outer.finished_ms

            def elapsed_time(self, end: Any) -> float:
                assert self.query(), "an event that the GPU has not passed must not be read"
                assert end.query(), "an event that the GPU has not passed must not be read"
                return float(end.at - self.at)

            def synchronize(self) -> None:
                raise AssertionError("the training was made to wait for the GPU")

        self.Event = Event

    def is_initialized(self) -> bool:
        return True

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def synchronize(self) -> None:
        raise AssertionError("the training was made to wait for the GPU")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    fake = Cuda()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=fake))
    return fake


def work(clock: GpuClock, cuda: Cuda, field: str, took_ms: float) -> None:
    start = clock.mark()
    cuda.now_ms += took_ms
    clock.pair(field, start)


def test_a_step_is_read_a_step_later(cuda: Cuda) -> None:
    clock = GpuClock()
    work(clock, cuda, "fwd_s", 100)
    work(clock, cuda, "fwd_s", 50)
    work(clock, cuda, "bwd_s", 200)
    assert clock.take() == {}
    cuda.finished_ms = cuda.now_ms
    work(clock, cuda, "fwd_s", 1)
    assert clock.take() == pytest.approx({"fwd_s": 0.150, "bwd_s": 0.200})


def test_a_busy_gpu_is_asked_again_a_step_later(cuda: Cuda) -> None:
    clock = GpuClock()
    for took_ms in (100, 200, 300):
        work(clock, cuda, "fwd_s", took_ms)
        assert clock.take() == {}
    cuda.finished_ms = cuda.now_ms
    work(clock, cuda, "fwd_s", 1)
    assert clock.take() == pytest.approx({"fwd_s": 0.1})
    assert clock.take() == pytest.approx({"fwd_s": 0.2})


def test_a_gpu_that_never_answers_costs_a_bounded_number_of_events(cuda: Cuda) -> None:
    clock = GpuClock()
    cuda.finished_ms = -1.0
    for _ in range(100):
        work(clock, cuda, "fwd_s", 1)
        assert clock.take() == {}
    assert len(clock._earlier) <= 8


def test_events_are_used_again(cuda: Cuda) -> None:
    clock = GpuClock()
    for _ in range(50):
        work(clock, cuda, "fwd_s", 1)
        cuda.finished_ms = cuda.now_ms
        clock.take()
    assert cuda.made <= 8


def test_nothing_is_recorded_into_a_graph(cuda: Cuda) -> None:
    cuda.capturing = True
    assert GpuClock().mark() is None


def test_a_cuda_error_is_the_trainings_to_meet(cuda: Cuda) -> None:
    clock = GpuClock()
    work(clock, cuda, "fwd_s", 1)
    clock.take()
    cuda.broken = True
    assert clock.mark() is None
    assert clock.take() == {}


def test_without_torch_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert GpuClock().mark() is None
