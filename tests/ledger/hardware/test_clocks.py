"""A card is low while it works and is slowed; idle it says nothing."""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.ledger.hardware.clocks import REASONS, SM_CLOCK, UTIL, Clocks

HOT = {REASONS: 64.0, SM_CLOCK: 1200.0, UTIL: 98.0}
FINE = {REASONS: 0.0, SM_CLOCK: 1980.0, UTIL: 98.0}
IDLE = {REASONS: 1.0, SM_CLOCK: 345.0, UTIL: 0.0}
ALERTS = Alerts()


def after(*spans: tuple[float, dict[str, float]]) -> Clocks:
    """The card read each 10 s, for so many seconds each."""
    clocks, t = Clocks(), 0.0
    for seconds, values in spans:
        for _ in range(round(seconds / 10)):
            clocks.add(t, values, ALERTS)
            t += 10.0
    return clocks


def test_a_hot_stretch_counts_once_when_it_has_lasted() -> None:
    assert not after((600, FINE), (290, HOT)).low_t
    clocks = after((600, FINE), (320, HOT))
    assert list(clocks.low_t) == [900.0]
    assert clocks.why == "hardware thermal slowdown"


def test_a_checkpoint_in_the_middle_neither_ends_it_nor_makes_two_of_it() -> None:
    assert len(after((250, HOT), (10, IDLE), (220, HOT)).low_t) == 1
    assert len(after((400, HOT), (180, IDLE), (400, HOT)).low_t) == 1


def test_work_at_full_clock_ends_it_and_so_does_a_long_rest() -> None:
    assert len(after((400, HOT), (10, FINE), (400, HOT)).low_t) == 2
    clocks = after((200, HOT), (400, IDLE), (200, HOT))
    assert not clocks.low_t
    assert after((400, HOT), (400, IDLE)).since_t is None


def test_an_idle_card_is_not_low() -> None:
    assert after((900, IDLE)).since_t is None
