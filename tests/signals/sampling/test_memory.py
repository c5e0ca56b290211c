"""The allocator's counters as fields; a stand-in for torch.cuda is all a test can have."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from train_ledger.fields import FIELDS
from train_ledger.signals.sampling import memory
from train_ledger.signals.sampling.memory import MemoryCounters

# Keys and form of torch.cuda.memory_stats(), torch 2.13.
STATS = {
    "allocated_bytes.all.current": 50,
    "allocated_bytes.all.peak": 70,
    "reserved_bytes.all.peak": 90,
    "active_bytes.all.peak": 75,
    "inactive_split_bytes.all.current": 5,
    "requested_bytes.all.current": 49,
    "num_alloc_retries": 1,
    "num_ooms": 0,
    "num_device_alloc": 12,
    "num_device_free": 2,
}


@pytest.fixture
def resets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    done: list[str] = []
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        memory_stats=lambda: dict(STATS),
        reset_peak_memory_stats=lambda: done.append("reset"),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    return done


def test_the_fields_of_a_line(resets: list[str]) -> None:
    fields = MemoryCounters().take()
    assert fields["mem_allocated_peak"] == 70
    assert fields["mem_inactive_split"] == 5
    assert fields["num_alloc_retries"] == 1
    assert fields.keys() <= FIELDS.keys()
    assert resets == ["reset"]


def test_the_trainings_own_peaks_can_be_kept(resets: list[str]) -> None:
    assert MemoryCounters(keep_peaks=True).take()["mem_allocated_peak"] == 70
    assert resets == []


def test_fast_steps_do_not_pay_for_it_each_time(resets: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    counters = MemoryCounters()
    assert counters.take()
    assert counters.take() == {}
    monkeypatch.setattr(memory.time, "monotonic", lambda: 1e9)
    assert counters.take()


def test_without_cuda_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))
    )
    assert MemoryCounters().take() == {}
