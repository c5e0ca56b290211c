"""Which starts of the run were there, and how far did each get?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median_high

from train_ledger.ledger.state import Attempt

__all__ = ["AttemptFold", "failed_restarts", "reached_before", "restarts"]

_BELIEVED = 10
"""The most starts that one which was seen is taken to stand for."""

Times = Callable[[int, float], float]


class AttemptFold:
    """One attempt, from the lines of all ranks; kept for good, while ranks go on to the next one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.world_size: int | None = None
        self._began: dict[int, float] = {}
        self._first: dict[int, tuple[int, float]] = {}
        self._last: dict[int, int] = {}

    @property
    def began_t(self) -> Mapping[int, float]:
        """Each rank's first line in this attempt, on its own clock."""
        return self._began

    def heard(self, rank: int, t: float) -> None:
        """`t` is a rank's first line in this attempt, on its own clock."""
        self._began.setdefault(rank, t)

    def completed(self, rank: int, step: int, t: float) -> None:
        """A rank completed a step at `t` on its own clock."""
        if rank not in self._first:
            self._first[rank] = (step, t)
        self.reached(rank, step)

    def reached(self, rank: int, step: int) -> None:
        """A rank completed a step, which a late line tells when the next attempt has begun."""
        self._last[rank] = max(step, self._last.get(rank, step))

    def shown(self, on_zero: Times) -> Attempt | None:
        """None where nothing was heard. It began when rank 0 did, since no clock goes before rank 0's."""
        if not self._began:
            return None
        began = self._began.get(0)
        firsts = self._first.values()
        return Attempt(
            number=self.number,
            started_t=min(on_zero(*item) for item in self._began.items()) if began is None else began,
            first_step=min((step for step, _ in firsts), default=None),
            first_step_t=min((on_zero(rank, t) for rank, (_, t) in self._first.items()), default=None),
            last_step=median_high(self._last.values()) if self._last else None,
        )


def reached_before(attempts: tuple[Attempt, ...], number: int) -> int | None:
    """The furthest step that any attempt before `number` completed; None where none completed any."""
    return max(
        (it.last_step for it in attempts if it.number < number and it.last_step is not None), default=None
    )


def restarts(attempts: Sequence[Attempt]) -> int:
    """How many starts these attempts tell of, the first of them left out.

    The numbers tell of starts whose own lines were never seen, too; but one that was seen vouches for a few
    before it only, so that a number that is wrong does not make thousands of it.

    >>> restarts([Attempt(0, 0.0), Attempt(1, 9.0), Attempt(4, 30.0)])
    4
    >>> restarts([Attempt(0, 0.0), Attempt(99_999, 9.0)])
    10
    """
    return sum(min(later.number - earlier.number, _BELIEVED) for earlier, later in pairwise(attempts))


def failed_restarts(attempts: tuple[Attempt, ...], *, current_is_down: bool) -> int:
    """How many restarts in a row, up to now, ended without passing the step once reached.

    The current attempt counts once it is down. An attempt whose number was skipped wrote nothing at all, so
    it passed nothing; `restarts` says how many of those are believed.

    >>> first = Attempt(0, started_t=0.0, first_step=1, last_step=50)
    >>> failed_restarts((first, Attempt(1, 9.0, 40, last_step=50), Attempt(3, 30.0)), current_is_down=False)
    2
    """
    if not attempts:
        return 0
    good = 0
    for place, attempt in enumerate(attempts[1:], start=1):
        before = reached_before(attempts, attempt.number)
        if attempt.last_step is not None and (before is None or attempt.last_step > before):
            good = place
    since = attempts[good:]
    return restarts(since) - (0 if current_is_down or len(since) == 1 else 1)
