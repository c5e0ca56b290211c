"""How far is each rank off its peers in each step, and is that more than noise?

Logarithms of ratios, so that half and double are as far off; medians and a spread that single steps do not
move; a sum that only grows while a rank is off for long (one-sided CUSUM of clipped values).
"""

from __future__ import annotations

import math

import numpy as np

from train_ledger.ledger.trends.own_work import OF_MAD
from train_ledger.slow.table.step_table import Floats, Ints

__all__ = ["FEWEST", "LIMIT", "log_ratios", "others_median", "run_sums", "spread"]

FEWEST = 3
"""Ranks of a stage that it takes to say who is off: of two nobody knows which one is."""

LIMIT = 14.0
"""A sum from which on a rank is off; with values clipped at 3 spreads and tails as of t3, 9 false ones in a
million steps, found 11 steps after a shift by 2 spreads (research by simulation; other gates follow)."""

_SMALLEST_SPREAD = 0.01
_CLIPPED_AT = 3.0
_DRIFT = 0.5
_MOST = 1.25 * LIMIT
_BLOCK = 20
_ALIKE_BY_CHANCE = 0.2


def others_median(values: Floats) -> Floats:
    """For each rank and step the median of the other ranks that told the step; shape (ranks, steps).

    >>> others_median(np.array([[1.0], [2.0], [9.0]])).ravel().tolist()
    [5.5, 5.0, 1.5]
    """
    ordered = np.sort(values, axis=0)
    told = np.isfinite(values).sum(axis=0)
    middle = told // 2
    low, mid, high = (_row(ordered, middle + shift) for shift in (-1, 0, 1))
    # What is left without one's own value depends only on which side of the middle that is.
    of_odd = np.where(values < mid, mid + high, np.where(values > mid, low + mid, low + high)) / 2
    of_even = np.where(values <= low, mid, low)
    found = np.where(told % 2, of_odd, of_even)
    untold = ~np.isfinite(values)
    if untold.any():
        found = np.where(untold, np.where(told % 2, mid, (low + mid) / 2), found)
    found[(told - ~untold) < FEWEST - 1] = np.nan
    return np.asarray(found)


def _row(ordered: Floats, places: Ints) -> Floats:
    """Of each step the value at its place."""
    inside = np.clip(places, 0, len(ordered) - 1)
    return np.asarray(ordered[inside, np.arange(ordered.shape[1])])


def log_ratios(values: Floats, groups: Ints) -> Floats:
    """The logarithm of each rank's value over the median of the others of its group (−1: of none).

    NaN where it told nothing, or fewer than two others did.
    """
    found = np.full(values.shape, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
        for group in np.unique(groups[groups >= 0]):
            members = np.flatnonzero(groups == group)
            if len(members) >= FEWEST:
                usual = others_median(np.where(np.isfinite(logs[members]), values[members], np.nan))
                found[members] = logs[members] - np.log(usual)
    return found


def spread(ratios: Floats, groups: Ints) -> Floats:
    """How far the ranks of each group vary from step to step, one figure a rank; at least 1 %.

    About each rank's own median, so that half of the ranks being off is no spread. Where a rank that is off
    mostly is so in the next step, too, steps tell less than as many of their own would: the spread is larger.
    """
    found = np.full(len(ratios), _SMALLEST_SPREAD)
    for group in np.unique(groups[groups >= 0]):
        members = groups == group
        told = ratios[members]
        told = told[np.isfinite(told).any(axis=1)]
        if len(told):
            off = np.abs(told - np.nanmedian(told, axis=1)[:, None])
            found[members] = max(_SMALLEST_SPREAD, OF_MAD * float(np.nanmedian(off)) * _lasting(told))
    return found


def _lasting(ratios: Floats) -> float:
    """The factor by which noise that lasts for some steps makes a mean of them vary more (1: it does not).

    By how alike neighbouring steps are within blocks so short that a change in most of them stands in none.
    """
    steps = ratios.shape[1] // _BLOCK * _BLOCK
    if not steps:
        return 1.0
    blocks = ratios[:, ratios.shape[1] - steps :].reshape(-1, _BLOCK)
    blocks = blocks[np.isfinite(blocks).all(axis=1)]
    if not len(blocks):
        return 1.0
    off = blocks - np.median(blocks, axis=1)[:, None]
    widest = 3 * OF_MAD * np.median(np.abs(off), axis=1)[:, None]
    off = np.clip(off, -widest, widest)
    squares = (off * off).mean(axis=1)
    alike = (off[:, 1:] * off[:, :-1]).mean(axis=1)[squares > 0] / squares[squares > 0]
    middle = float(np.median(alike)) if alike.size else 0.0
    return math.sqrt((1 + middle) / (1 - middle)) if _ALIKE_BY_CHANCE < middle < 1 else 1.0


def run_sums(ratios: Floats, spreads: Floats) -> Floats:
    """The CUSUM of each rank after each step; a step that it did not tell changes nothing.

    It grows a quarter beyond the limit at most: who is no longer off is soon not held to be.
    """
    gains = np.nan_to_num(np.clip(ratios / spreads[:, None], -_CLIPPED_AT, _CLIPPED_AT) - _DRIFT)
    sums = np.zeros_like(gains)
    now = np.zeros(len(gains))
    for step in range(gains.shape[1]):
        now = np.clip(now + gains[:, step], 0.0, _MOST)
        sums[:, step] = now
    return sums
