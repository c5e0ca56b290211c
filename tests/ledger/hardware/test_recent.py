"""The last minutes of a card, without those in which it had nothing to do."""

from __future__ import annotations

from train_ledger.ledger.hardware.clocks import SM_CLOCK, UTIL
from train_ledger.ledger.hardware.recent import Recent


def read(*readings):
    recent = Recent()
    for t, mhz, percent in readings:
        recent.add(t, {SM_CLOCK: mhz, UTIL: percent})
    return recent.medians()


def test_the_median_of_five_minutes():
    told = [(t, 1900.0 if t == 600 else 1410.0, 98.0) for t in range(0, 601, 30)]
    assert read(*told) == {SM_CLOCK: 1410.0}


def test_what_is_older_counts_no_more():
    told = [(t, 1980.0 if t < 600 else 1200.0, 98.0) for t in range(0, 1000, 30)]
    assert read(*told) == {SM_CLOCK: 1200.0}


def test_a_card_that_has_nothing_to_do_says_nothing():
    assert read((0, 1980.0, 98.0), (30, 345.0, 0.0), (60, 345.0, 0.0)) == {SM_CLOCK: 1980.0}


def test_figures_that_are_not_told_are_not_there():
    assert read() == {}
