"""When did a run end whose last lines tell no time?

They are as late as their file was written last, which in a file that was copied is when it was copied: years
of standing still would lie between. They may also have come right behind the last line that does tell a time.
"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.facts import Fact, Fault
from train_ledger.ledger.accounts import History
from train_ledger.render import duration

__all__ = ["DatedHistory"]

_MOST_S = 86_400.0
"""So long after the last line that tells a time one without is believed to be as late as its file."""


class DatedHistory(History):
    """A history in which no fault without a time of its own lies more than a day behind all that has one."""

    def forget(self) -> None:
        super().forget()
        self._most_behind_s = 0.0

    def add(self, fact: Fact) -> None:
        super().add(self._placed(fact))

    @property
    def not_observed(self) -> tuple[str, ...]:
        """That it cannot be told when the run ended, where that is so."""
        if not self._most_behind_s:
            return ()
        behind = duration(self._most_behind_s)
        return (
            f"when the run ended: its last lines carry no time, and their file was written {behind} after "
            "the last line that does, as a copy is; they are taken to have come with that line",
        )

    def _placed(self, fact: Fact) -> Fact:
        if not isinstance(fact, Fault) or fact.t is None or "earliest_t" not in fact.details:
            return fact
        heard_t = self.heard_t
        if heard_t is None or fact.t - heard_t <= _MOST_S:
            return fact
        self._most_behind_s = max(self._most_behind_s, fact.t - heard_t)
        return replace(fact, t=heard_t)
