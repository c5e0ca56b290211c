"""What a host tells of its hardware is of the time that its ranks' lines show, jump by jump."""

from __future__ import annotations

import pytest

from train_ledger.facts import Event, HardwareReading, Step
from train_ledger.ledger import known_with_hardware
from train_ledger.ledger.host_times import HostTimes

JUMP_T = 1000.0


def times(by_s: float) -> HostTimes:
    """A host whose clock jumps at 1000; two ranks tell a line every ten seconds, one after the other."""
    made = HostTimes()
    for rank in (4, 5):
        for t in range(0, 2000, 10):
            made.saw(Step(t + by_s * (t > JUMP_T), t // 10, rank, host="b", values={}), float(t))
    return made


@pytest.mark.parametrize("by_s", [0.0, 2400.0, -2400.0, -300.0])
def test_lines_of_the_hardware_are_carried_over_the_jump_as_those_of_the_ranks(by_s: float) -> None:
    made = times(by_s)
    for t in range(3, 1990, 15):
        told = t + by_s * (t > JUMP_T)
        assert made.dated("b", "readings", told) == pytest.approx(t, abs=0.1)


def test_each_kind_of_line_has_its_own_order() -> None:
    made = times(-300.0)
    assert made.dated("b", "readings", 900.0) == 900.0
    assert made.dated("b", "readings", 720.0) == 1020.0
    assert made.dated("b", "kernel", 900.0) == 900.0


def test_a_host_of_which_no_rank_tells_keeps_its_own_time() -> None:
    assert times(0.0).dated("elsewhere", "readings", 5.0) == 5.0


def test_what_was_known_then_of_a_host_whose_clock_jumped() -> None:
    """Host b goes 40 min ahead at step 30; a look at its GPU right after the jump is of that time."""
    facts: list[Step | Event] = []
    for rank, host in ((0, "a"), (1, "b")):
        facts.append(Event(0.0, "run_start", rank, host=host, details={"world_size": 2}))
        for step in range(1, 61):
            t = 10.0 * step + 2400 * (host == "b" and step > 30)
            facts.append(Step(t, step, rank, host=host, values={"step_time_s": 10.0}))
    look = HardwareReading(2400 + 400.0, "b", 0, "GPU-1", None, by="nvml", values={})
    assert known_with_hardware(facts, [look], 395.0)[1] == []
    assert known_with_hardware(facts, [look], 405.0)[1] == [look]
