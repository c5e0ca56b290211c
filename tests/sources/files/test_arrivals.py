"""How long lines lie in a buffer shows in when they come."""

from __future__ import annotations

import pytest

from train_ledger.facts import Step
from train_ledger.sources.files.arrivals import Arrivals

T0 = 1_770_000_000.0


def steps(first: int, count: int, *, step_s: float = 2.0) -> list[Step]:
    values = {"step_time_s": step_s}
    return [Step(T0, first + it, None, source=f"x.log:{first + it}", values=values) for it in range(count)]


def test_lines_that_come_one_by_one_lie_in_no_buffer() -> None:
    log = Arrivals()
    assert not any(log.came(steps(it, 1), T0 + 100 * it, 250, is_torn=False) for it in range(20))
    assert log.every_s == 0.0


def test_lines_that_come_many_at_once_do_for_as_long_as_none_came() -> None:
    log = Arrivals()
    log.came(steps(1, 30), T0, 7500, is_torn=False)
    assert log.came(steps(31, 30), T0 + 60, 7500, is_torn=False)
    assert log.every_s == 60.0
    assert not log.came(steps(61, 31), T0 + 122, 7750, is_torn=False), "that is nearly the same"
    assert log.came(steps(92, 60), T0 + 242, 15_000, is_torn=False)
    assert log.every_s == 120.0


def test_one_that_is_written_line_by_line_from_now_on_is_believed_after_some_lines() -> None:
    log = Arrivals()
    log.came(steps(1, 30), T0, 7500, is_torn=False)
    log.came(steps(31, 30), T0 + 60, 7500, is_torn=False)
    told = [log.came(steps(61 + it, 1), T0 + 62 + 2 * it, 250, is_torn=False) for it in range(10)]
    assert told.count(True) == 1
    assert log.every_s == 0.0


def test_before_two_writings_a_torn_end_tells_of_a_buffer() -> None:
    log = Arrivals()
    assert log.came(steps(1, 41), T0, 41 * 256, is_torn=True)
    assert log.every_s == pytest.approx(8192 / 256 * 2.0, rel=0.05)  # so many lines of 2 s


def test_what_tells_no_step_says_nothing_of_it() -> None:
    log = Arrivals()
    assert not log.came([], T0, 10_000, is_torn=True)
    assert log.is_new


def test_steps_that_one_line_tells_come_with_it() -> None:
    """Bars are drawn one over the other, and the line ends with the record of 50 steps."""
    bars = [Step(T0, it, None, source=f"x.log:{it // 50}", values={"step_time_s": 2.0}) for it in range(200)]
    log = Arrivals()
    assert log.came(bars, T0, 30_000, is_torn=False)
    assert log.every_s == 49 * 2.0
