"""How often should a run be saved, and how much of its time does an interval cost?

Young 1974 and Daly 2006 on the interval; the first-order waste; and Meta's closed form of the effective
training time ratio (arXiv 2410.21680). Times are in seconds.
"""

from __future__ import annotations

import math

__all__ = ["daly_s", "ettr", "mttf_s", "waste", "young_s"]

_DAY_S = 86_400.0


def young_s(checkpoint_s: float, mtbi_s: float) -> float:
    """√(2 δ M): the interval at which saving and doing again cost the same, to the first order.

    >>> round(young_s(45, 3 * 3600) / 60, 1)
    16.4
    """
    return math.sqrt(2 * checkpoint_s * mtbi_s)


def daly_s(checkpoint_s: float, mtbi_s: float) -> float:
    """Daly's higher-order interval; M itself where a save costs more than 2 M."""
    if checkpoint_s >= 2 * mtbi_s:
        return mtbi_s
    share = checkpoint_s / (2 * mtbi_s)
    return young_s(checkpoint_s, mtbi_s) * (1 + math.sqrt(share) / 3 + share / 9) - checkpoint_s


def waste(interval_s: float, checkpoint_s: float, mtbi_s: float, recovery_s: float = 0.0) -> float:
    """The share of time that goes into saving, doing again and recovering: δ/(τ+δ) + (τ/2+R)/M.

    To the first order; more than 1 where a run fails faster than it comes back.
    """
    return checkpoint_s / (interval_s + checkpoint_s) + (interval_s / 2 + recovery_s) / mtbi_s


def mttf_s(nodes: float, failures_per_node_day: float) -> float:
    """Mean time to the first failure of so many nodes: 1 / (N r).

    >>> round(mttf_s(2048, 6.5e-3) / 3600, 2)
    1.8
    """
    return _DAY_S / (nodes * failures_per_node_day)


def ettr(mtbi_s: float, recovery_s: float, interval_s: float, checkpoint_s: float = 0.0) -> float:
    """Expected share of useful time: (1 - (u + τ/2)/M) / (1 + δ/τ), never below 0.

    `recovery_s` is u, from the failure to training again, without what is done again.

    >>> round(ettr(mttf_s(2048, 6.5e-3), 300, 3600), 3)
    0.676
    """
    useful = 1 - (recovery_s + interval_s / 2) / mtbi_s
    return max(0.0, useful) / (1 + checkpoint_s / interval_s)
