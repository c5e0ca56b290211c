"""In which words is it told what an incident cost, and whether it still costs?"""

from __future__ import annotations

from train_ledger.answer import Impact
from train_ledger.render.words import duration

__all__ = ["impact", "is_felt", "still_slow"]

_STILL_SLOW = 1.25
"""By this factor; below it a step may have gone back to what it took."""


def still_slow(before_s: float | None, now_s: float | None) -> str | None:
    """What a step takes now and took before an incident; None where that is about the same, or not known.

    >>> still_slow(12.0, 40.0)
    'a step takes 40 s, before the incident it took 12 s'
    """
    if not before_s or now_s is None or now_s < _STILL_SLOW * before_s:
        return None
    return f"a step takes {duration(now_s)}, before the incident it took {duration(before_s)}"


_NOTHING_LOST_S = 0.5


def is_felt(impact: Impact | None) -> bool:
    """Whether it cost anything yet: of a run that goes on it is the time since its last step."""
    return impact is not None and impact.wall_s >= _NOTHING_LOST_S


def impact(impact: Impact | None, currency: str) -> str | None:
    """Wall time, GPU-hours and money; None where nothing was lost yet."""
    if impact is None or not is_felt(impact):
        return None
    hours = "" if impact.gpu_hours is None else f", {impact.gpu_hours:,.2f} GPU-hours"
    cost = "" if impact.cost is None else f", {impact.cost:,.2f} {currency}".rstrip()
    return f"{duration(impact.wall_s)} of wall time{hours}{cost}"
