"""How long did a run that was interrupted several times in one incident stand, and do steps once more?

Interruptions may follow each other before a step was done, or before the step once reached was passed: no
second is counted twice, and those in which the run got on are not counted at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from train_ledger.ledger.accounts import Recovery

__all__ = ["redoing_s", "standing_s"]

_Stretch = tuple[float, float]


def standing_s(recoveries: Sequence[Recovery]) -> float | None:
    """Seconds from each last step to the next one; None where the last attempt has completed none yet."""
    if recoveries[-1].first_step_t is None:
        return None
    ends = (it.first_step_t if it.first_step_t is not None else next_t for it, next_t in _each(recoveries))
    begins = (it.interruption.t for it in recoveries)
    return _covered_s(zip(begins, ends, strict=True))


def redoing_s(recoveries: Sequence[Recovery]) -> float | None:
    """Seconds of steps that had been done before; None while the step once reached has not been passed."""
    if recoveries[-1].over_t is None:
        return None
    stretches = (
        (it.first_step_t, next_t if it.over_t is None else it.over_t)
        for it, next_t in _each(recoveries)
        if it.first_step_t is not None
    )
    return _covered_s(stretches)


def _each(recoveries: Sequence[Recovery]) -> Iterable[tuple[Recovery, float]]:
    """Each with when the run was interrupted again; the last one with its own times alone."""
    yield from ((old, new.interruption.t) for old, new in pairwise(recoveries))
    yield recoveries[-1], recoveries[-1].interruption.t


def _covered_s(stretches: Iterable[_Stretch]) -> float:
    covered_s, until_t = 0.0, float("-inf")
    for begin, end in sorted(stretches):
        covered_s += max(0.0, end - max(begin, until_t))
        until_t = max(until_t, end)
    return covered_s
