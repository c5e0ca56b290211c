"""Are two samples of one kind, and where do they part? By ranks, so that no single step decides.

Mann and Whitney's U with ties, by its normal approximation; for each place in a row at once, since the ranks
of the whole row are the same wherever it is cut.
"""

from __future__ import annotations

import math

import numpy as np

from train_ledger.slow.table.step_table import Floats

__all__ = ["best_cut", "p_of", "rank_test", "ranked"]


def ranked(values: Floats) -> tuple[Floats, float]:
    """The ranks from 1 on, equal values sharing theirs, and what ties take from the variance (1: nothing).

    >>> ranked(np.array([3.0, 1.0, 3.0]))[0].tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place]
    n = len(values)
    ties = 1 - float((counts.astype(float) ** 3 - counts).sum()) / max(1.0, float(n) ** 3 - n)
    return ranks, ties


def best_cut(values: Floats, least: int) -> tuple[int, float]:
    """(where, z): where the row parts best into a lower and a higher side of at least `least` values each."""
    n = len(values)
    ranks, ties = ranked(values)
    if n < 2 * least or ties <= 0:
        return 0, 0.0
    before = np.arange(least, n - least + 1)
    sums = np.cumsum(ranks)[before - 1]
    spread = np.sqrt(before * (n - before) * (n + 1) / 12 * ties)
    z = np.abs(sums - before * (n + 1) / 2) / spread
    best = int(z.argmax())
    return int(before[best]), float(z[best])


def rank_test(before: Floats, after: Floats) -> float:
    """The two-sided p-value of both being of one kind.

    >>> same = np.arange(20.0)
    >>> rank_test(same, same) > 0.9, rank_test(same, 100 + same) < 1e-6
    (True, True)
    """
    n, m = len(before), len(after)
    ranks, ties = ranked(np.concatenate((before, after)))
    if not n or not m or ties <= 0:
        return 1.0
    spread = math.sqrt(n * m * (n + m + 1) / 12 * ties)
    return p_of((abs(float(ranks[:n].sum()) - n * (n + m + 1) / 2) - 0.5) / spread)


def p_of(z: float) -> float:
    """The two-sided p-value of a normal deviate."""
    return min(1.0, math.erfc(max(0.0, z) / math.sqrt(2)))
