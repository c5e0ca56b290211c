"""Simulated job-days: what is told stands in the order in which it is read, and the truth can be found."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_ledger.chaos.days import (
    FAULTS,
    SHAPES,
    Day,
    Judged,
    Truth,
    faulty_day,
    healthy_day,
    judge_day,
    score,
    write_day,
)
from train_ledger.chaos.days.clock import HostClock
from train_ledger.chaos.days.judged import Noticed
from train_ledger.dash.backtest import PastAlert
from train_ledger.facts import Fault, HardwareReading, Step
from train_ledger.sources import read_run


@pytest.mark.parametrize("name", SHAPES)
def test_a_day_is_told_in_the_order_in_which_it_is_read(name: str) -> None:
    newest: dict[int | None, tuple[int, int]] = {}
    last_at = 0.0
    for at, fact in healthy_day(name, 3, hours=2.0).told:
        assert at >= last_at
        last_at = at
        if isinstance(fact, Step):
            assert (fact.attempt, fact.step) > newest.get(fact.rank, (0, 0))
            newest[fact.rank] = (fact.attempt, fact.step)
    assert last_at > 0


@pytest.mark.parametrize("name", ["steady", "clocks", "odd_hardware"])
def test_the_same_seed_tells_the_same_day(name: str) -> None:
    days = [[*healthy_day(name, seed, hours=1.0).told] for seed in (5, 5, 6)]
    assert days[0] == days[1] != days[2]


def test_what_is_read_late_was_written_when_it_happened() -> None:
    late = [
        at - fact.t
        for at, fact in healthy_day("late_writers", 0, hours=0.5).told
        if isinstance(fact, Step) and fact.rank == 6
    ]
    assert min(late) >= 60.0


def test_hardware_is_told_of_every_card_and_port() -> None:
    readings = [
        fact for _, fact in healthy_day("steady", 0, hours=0.1).told if isinstance(fact, HardwareReading)
    ]
    assert {(one.host, one.gpu) for one in readings if one.gpu is not None} == {
        (f"node{host:03d}", gpu) for host in range(4) for gpu in range(4)
    }
    assert {one.device for one in readings if one.gpu is None} == {"mlx5_0"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_nobody_is_woken_on_a_healthy_morning(name: str) -> None:
    day = healthy_day(name, 1, hours=1.5)
    found = score(day, judge_day(day))
    assert (found.false_pages, found.misnamed) == ((), ())


@pytest.mark.parametrize("kind", FAULTS)
def test_the_truth_of_a_fault_is_known_at_the_end_of_its_day(kind: str) -> None:
    day = faulty_day(kind, 1, hours=(1.5, 2.0))
    last_at = max(at for at, _ in day.told)
    truth = day.truth
    assert truth.kind == kind
    assert truth.t <= truth.earliest_t < last_at
    assert truth.alerts


_SLOTS_S = {"slow_on_all": 45.0, "mfu_low": 45.0}
"""Medians are told by slots of 30 s, and of MFU of 15 s: what is found in one is told with the next."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_is_found_and_no_innocent_is_named(kind: str) -> None:
    day = faulty_day(kind, 2, hours=(2.0, 2.5))
    found = score(day, judge_day(day))
    assert (found.false_pages, found.misnamed) == ((), ())
    assert found.delay_s is not None
    assert found.delay_s <= _SLOTS_S.get(kind, 15.0)


def _judged(*alerts: tuple[float, str, dict[str, str]]) -> Judged:
    noticed = (Noticed(t, PastAlert(name, "page", labels, t, "")) for t, name, labels in alerts)
    return Judged(tuple(noticed), 0, 0.0)


def _day(truth: Truth) -> Day:
    return Day("day", 0, 0.0, {}, iter(()), lambda _: HostClock(), truth)


def test_a_page_before_the_fault_is_false_and_finds_nothing() -> None:
    truth = Truth("xid", 100.0, 100.0, frozenset({"GpuXidError"}), gpus=frozenset({1}))
    found = score(_day(truth), _judged((50.0, "GpuXidError", {"gpu": "1"})))
    assert not found.found
    assert len(found.false_pages) == 1


def test_a_page_that_names_another_gpu_names_an_innocent() -> None:
    truth = Truth("xid", 100.0, 100.0, frozenset({"GpuXidError"}), gpus=frozenset({1}))
    found = score(_day(truth), _judged((105.0, "GpuXidError", {"gpu": "2"})))
    assert (found.delay_s, len(found.misnamed), found.false_pages) == (5.0, 1, ())


def test_what_comes_with_a_fault_is_not_false() -> None:
    truth = Truth("gone", 100.0, 220.0, frozenset({"Gone"}), allowed=frozenset({"Stalled"}))
    found = score(_day(truth), _judged((190.0, "Stalled", {}), (221.0, "Gone", {}), (300.0, "Other", {})))
    assert found.delay_s == 1.0
    assert [false.split(" at ")[0] for false in found.false_pages] == ["Other"]


def test_a_day_that_is_written_reads_as_it_was_told(tmp_path: Path) -> None:
    told = [
        fact
        for _, fact in healthy_day("restarts", 2, hours=0.5).told
        if not isinstance(fact, HardwareReading | Fault)
    ]
    read = read_run(write_day(tmp_path / "run", healthy_day("restarts", 2, hours=0.5)))
    assert not read.not_read
    for rank in range(8):
        own = [(it.step, round(it.t, 6)) for it in told if it.rank == rank]
        assert [(it.step, it.t) for it in read.facts if it.rank == rank and not isinstance(it, Fault)] == own
