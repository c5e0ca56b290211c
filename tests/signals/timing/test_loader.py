"""The wait for data is timed, and the batches stay as they are."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from train_ledger.signals.timing.loader import Loader, ready_batches
from train_ledger.signals.timing.phases import Phases
from waiting import wait_until


@pytest.fixture
def phases() -> Phases:
    return Phases(lambda event, **details: None)


class Numbers(Dataset):  # type: ignore[type-arg]
    def __init__(self, took_s: float = 0.0) -> None:
        self.took_s = took_s

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        time.sleep(self.took_s)
        return index


def slow() -> Iterator[int]:
    for number in range(3):
        time.sleep(0.02)
        yield number


def test_any_iterable_and_the_time_of_each_next(phases: Phases) -> None:
    began_s = time.monotonic()
    assert list(Loader(slow(), phases.begin, lambda depth: None)) == [0, 1, 2]
    took_s = time.monotonic() - began_s
    assert 0.06 <= phases.take()["data_wait_s"] <= took_s


def test_work_between_two_batches_does_not_count(phases: Phases, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now_s[0], time=time.time)
    monkeypatch.setattr("train_ledger.signals.timing.phases.time", clock)

    def batches() -> Iterator[int]:
        for number in range(3):
            now_s[0] += 2.0
            yield number

    for _ in Loader(batches(), phases.begin, lambda depth: None):
        now_s[0] += 50.0
    assert phases.take()["data_wait_s"] == pytest.approx(6.0)


def test_every_epoch_begins_anew_and_the_length_is_known(phases: Phases) -> None:
    loader = Loader([1, 2, 3], phases.begin, lambda depth: None)
    assert (len(loader), list(loader), list(loader)) == (3, [1, 2, 3], [1, 2, 3])


def test_whatever_else_is_asked_is_asked_of_the_loader(phases: Phases) -> None:
    data = DataLoader(Numbers(), batch_size=4)
    loader: Any = Loader(data, phases.begin, lambda depth: None)
    assert loader.dataset is data.dataset
    assert loader.batch_size == 4
    with pytest.raises(AttributeError, match="nothing_like_that"):
        loader.nothing_like_that  # noqa: B018
    assert copy.copy(loader).batch_size == 4


def test_what_is_set_is_set_on_the_loader(phases: Phases) -> None:
    data = DataLoader(Numbers(), batch_size=4)
    loader: Any = Loader(data, phases.begin, lambda depth: None)
    loader.prefetched = 3
    assert data.prefetched == 3  # type: ignore[attr-defined]
    listed: Any = Loader([1, 2], phases.begin, lambda depth: None)
    assert (listed[1], bool(listed)) == (2, True)
    assert bool(Loader(iter([1]), phases.begin, lambda depth: None)), "which has no length"


def test_a_framework_that_shares_out_a_loader_takes_it_for_one(phases: Phases) -> None:
    from accelerate.data_loader import prepare_data_loader

    data = DataLoader(list(range(8)), batch_size=2)  # type: ignore[arg-type,var-annotated]
    loader: Any = Loader(data, phases.begin, lambda depth: None)
    assert isinstance(loader, DataLoader)
    shares = [prepare_data_loader(it, num_processes=2, process_index=1) for it in (data, loader)]
    assert [[batch.tolist() for batch in share] for share in shares] == [[[2, 3], [6, 7]]] * 2


def test_an_error_of_the_loader_is_the_trainings_and_tells_its_phase(phases: Phases) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("shard 7 is gone")

    batches = iter(Loader(broken(), phases.begin, lambda depth: None))
    assert next(batches) == 1
    with pytest.raises(OSError, match="shard 7") as raised:
        next(batches)
    assert phases.raised_in(raised.value) == "data"
    with pytest.raises(StopIteration):
        next(batches)


def test_a_queue_that_is_full_and_one_that_cannot_keep_up(phases: Phases) -> None:
    depths: list[int] = []
    fast = iter(DataLoader(Numbers(), batch_size=4, num_workers=1, prefetch_factor=3))
    batches = iter(Loader(fast, phases.begin, depths.append))
    for _ in range(6):
        wait_until(lambda: ready_batches(fast) == 3)
        next(batches)
    assert depths == [3, 3, 3, 3, 3, 3]
    depths.clear()
    late = DataLoader(Numbers(took_s=0.05), batch_size=4, num_workers=1, prefetch_factor=3)
    for _ in Loader(late, phases.begin, depths.append):
        pass
    assert depths[:10].count(0) > 5, "but where we had no core for as long as a batch takes"


def test_a_loader_that_shows_no_queue(phases: Phases) -> None:
    assert ready_batches(iter(DataLoader(Numbers(), batch_size=4))) is None
    assert ready_batches(iter([1])) is None


def test_the_fewest_of_a_step_are_in_its_line(tmp_path: Path) -> None:
    import json

    import train_ledger

    monitor = train_ledger.start(tmp_path)
    data = DataLoader(Numbers(), batch_size=4, num_workers=1, prefetch_factor=2)
    for step, batch in enumerate(batches := iter(monitor.loader(data))):
        assert torch.is_tensor(batch)
        monitor.step(step)
        if step < 7:  # at the end there are no more that could be ready
            wait_until(lambda: ready_batches(batches._batches) == 2)
    monitor.close()
    lines = [json.loads(line) for line in monitor.logger.path.read_text().splitlines()]
    depths = [line["queue_depth"] for line in lines if "gc_s" in line]
    assert depths[2:6] == [2, 2, 2, 2]
    assert all(line["data_wait_s"] < 30 for line in lines if line.get("step", 0) > 1)
