"""Many faults, few troubles."""

from __future__ import annotations

from typing import Any

from train_ledger.facts import Fault
from train_ledger.sources import Incidents


def fault(kind: str, line: int, rank: int | None = None, **details: Any) -> Fault:
    return Fault(None, kind, rank, source=f"a.log:{line}", details=details)


def test_ranks_that_tell_the_same_are_one_trouble_with_whom_it_met() -> None:
    (one,) = Incidents(fault("oom", rank, rank, message=f"tried {rank} GiB") for rank in range(4)).all
    assert (one.times, one.ranks, one.first.source) == (4, {0, 1, 2, 3}, "a.log:0")


def test_exceptions_are_one_where_they_differ_in_numbers_alone() -> None:
    told = [
        fault("exception", 1, type="KeyError", message="item 17"),
        fault("exception", 2, type="KeyError", message="item 4"),
        fault("exception", 3, type="KeyError", message="another"),
    ]
    assert [it.times for it in Incidents(told).all] == [2, 1]


def test_exceptions_are_one_where_they_differ_in_addresses_alone() -> None:
    told = [fault("exception", 1, message=f"no tensor at {place}") for place in ("0x7fab10", "0x55c0d9e")]
    assert [it.times for it in Incidents(told).all] == [2]


def test_they_come_as_they_stand_in_the_log_and_victims_last() -> None:
    told = [fault("signal", 2, 0, victim=True), fault("killed", 9, 1, root=True), fault("nccl_error", 5, 0)]
    assert [it.first.fault for it in Incidents(told).all] == ["nccl_error", "killed", "signal"]


def test_each_gpu_and_each_code_is_its_own() -> None:
    told = [
        fault("xid", it, code=code, pci=pci)
        for it, (code, pci) in enumerate([(79, "a"), (79, "b"), (31, "a")])
    ]
    assert len(Incidents(told).all) == 3


def test_of_very_many_kinds_the_rest_is_counted() -> None:
    incidents = Incidents(fault("exception", it, type="E" + "x" * it, message="m") for it in range(1100))
    assert (len(incidents.all), incidents.left_out) == (1000, 100)
