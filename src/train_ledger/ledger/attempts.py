"""Which starts of the run were there, and how far did each get?"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median_high

from train_ledger.ledger.state import Attempt

__all__ = ["AttemptFold", "failed_restarts", "reached_before"]

Times = Callable[[int, float], float]


class AttemptFold:
    """One attempt, from the lines of all ranks; kept for good, while ranks go on to the next one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.world_size: int | None = None
        self._began: dict[int, float] = {}
        self._first: dict[int, tuple[int, float]] = {}
        self._last: dict[int, int] = {}

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


def failed_restarts(attempts: tuple[Attempt, ...], *, current_is_down: bool) -> int:
    """How many restarts in a row, up to now, ended without passing the step once reached.

    The current attempt counts once it is down. An attempt whose number was skipped wrote nothing at all, so
    it passed nothing.

    >>> first = Attempt(0, started_t=0.0, first_step=1, last_step=50)
    >>> failed_restarts((first, Attempt(1, 9.0, 40, last_step=50), Attempt(3, 30.0)), current_is_down=False)
    2
    """
    if not attempts:
        return 0
    current = attempts[-1].number
    good = attempts[0].number
    for attempt in attempts[1:]:
        before = reached_before(attempts, attempt.number)
        if attempt.last_step is not None and (before is None or attempt.last_step > before):
            good = attempt.number
    return current - good - (0 if current_is_down or current == good else 1)
