"""Is a rank off by more than noise alone makes it look now and then?

A rank that is a little slower since ever, as cards differ, and varies from step to step, is beyond what
counts in most of some twenty steps once in a while: among many ranks and steps somebody always is. Whoever
drags is far beyond what counts for so few steps, or beyond it for many, or farther off than it was before.
"""

from __future__ import annotations

import math

import numpy as np

from train_ledger.slow.table.step_table import Flags, Floats

__all__ = ["is_sure"]

_BEYOND = 4.5
"""Errors of a median by which it must be beyond what counts."""

_RISEN = 5.5
"""The same of a median beside an earlier one, which is uncertain, too."""

_OF_MEDIAN = math.sqrt(math.pi / 2)
"""The error of the median of n values over that of one, times √n."""


def is_sure(ratios: Floats, was: Floats, recent: Flags, spreads: Floats, least: float) -> Flags:
    """Which ranks are off for certain: `ratios` are log-ratios to the peers, ranks × steps.

    `was` is each rank's usual one of before (NaN: not known), `recent` the newest steps, `spreads` how far
    each rank's ratio varies from step to step, `least` the log-ratio from which on somebody is off.
    """
    found = np.zeros(len(ratios), dtype=np.bool_)
    for row in np.flatnonzero(recent.any(axis=1)):
        told = ratios[row][np.isfinite(ratios[row])]
        now = ratios[row][recent[row] & np.isfinite(ratios[row])]
        if len(now):
            error = _OF_MEDIAN * float(spreads[row])
            risen = float(np.median(now)) - was[row] >= _RISEN * error / math.sqrt(len(now))
            found[row] = risen or _is_beyond(told, len(now), error, least)
    return found


def _is_beyond(told: Floats, fewest: int, error: float, least: float) -> bool:
    """By the newest steps, or twice as many, and so on: the longer it lasts, the less a rank must be off."""
    count = fewest
    while True:
        newest = told[-count:]
        if float(np.median(newest)) - least >= _BEYOND * error / math.sqrt(len(newest)):
            return True
        if count >= len(told):
            return False
        count *= 2
