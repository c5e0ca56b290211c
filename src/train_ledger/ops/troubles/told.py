"""What has gone wrong in a run, as far as it was read, and what of it can have happened in a given time?"""

from __future__ import annotations

from dataclasses import dataclass

from train_ledger.ops.troubles.order import gave_up_t
from train_ledger.ops.troubles.trouble import Trouble

__all__ = ["Told"]


@dataclass(frozen=True, slots=True)
class Told:
    """Troubles by their times, and what was not read, in words.

    `over_t` is when launchers last said that their ranks had ended, or watchdogs that they end theirs; None
    where none did. Nothing of the run is left to lose time then. `last_step_t` is when a log last told of a
    step or a start, `last_start_t` when one of them began; `restarts_t` are the times of its restarts.
    `passed` are places ("file:line") of exceptions that nobody died of: behind which the same log tells of
    more steps, or whose rank came to what all others wait for; `passed_ranks` those ranks.
    """

    troubles: tuple[Trouble, ...] = ()
    not_read: tuple[str, ...] = ()
    over_t: float | None = None
    last_step_t: float | None = None
    last_start_t: float | None = None
    restarts_t: tuple[float, ...] = ()
    passed: frozenset[str] = frozenset()
    passed_ranks: frozenset[int] = frozenset()

    def within(self, since_t: float | None, until_t: float | None = None) -> tuple[Trouble, ...]:
        """Those that can have happened in this time; those whose time is not known are among them."""
        return tuple(
            it
            for it in self.troubles
            if (it.t is None or since_t is None or it.t >= since_t)
            and (it.earliest_t is None or until_t is None or it.earliest_t <= until_t)
        )

    def places_beside(self, since_t: float | None) -> frozenset[str]:
        """Where exceptions stand ("file:line") that did not bring about what is so since `since_t` (unix s).

        They were raised before it, or when others had given up waiting.
        """
        end_t = gave_up_t(self.within(since_t))
        return self.passed | frozenset(
            it.source
            for it in self.troubles
            if it.kind in ("exception", "oom")
            and (_is_before(it.t, since_t) or _is_before(end_t, it.earliest_t))
        )


def _is_before(t: float | None, other_t: float | None) -> bool:
    return t is not None and other_t is not None and t < other_t
