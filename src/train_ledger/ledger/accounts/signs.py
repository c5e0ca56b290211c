"""Which signs of life and of death does a run show between two steps?

Signs come from the facts, and from what the keeper and the dumps tell besides. `what` of a sign is one of
alive, dead, ended (it said run_end), launched (a launcher begins to start it again), opened (an incident, or
a page), dumped (the dumps are there), gone (dead, though not since when).
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from train_ledger.ledger.accounts.history import Happened

__all__ = ["Sign", "signs_of"]

_ASKING = (signal.SIGUSR1, signal.SIGUSR2)
_DEAD = frozenset({"exception", "killed", "oom", "process_gone", "process_end", "signal_sent"})


class Sign(NamedTuple):
    """`t_us` in microseconds on the run's clock; `cause` what is said of it."""

    t_us: int
    what: str
    cause: str = ""
    rank: int | None = None
    source: str = ""

    def order(self) -> tuple[int, str, str, int, str]:
        """The order of time; of one moment always the same, whether a rank is named or not."""
        return (self.t_us, self.what, self.cause, -1 if self.rank is None else self.rank, self.source)


def signs_of(told: Iterable[tuple[int, Happened]]) -> Iterator[Sign]:
    """The signs among what happened, each with its time on the run's clock."""
    for t_us, it in told:
        if it.name == "run_end":
            yield Sign(t_us, "ended", "", it.rank, it.source)
        elif it.name == "restart":
            yield Sign(t_us, "launched", "", it.rank, it.source)
        elif it.name == "signal":
            number = it.details.get("number")
            if number not in _ASKING:
                yield Sign(t_us, "dead", f"signal {number}", it.rank, it.source)
        elif it.name in _DEAD:
            if it.name != "exception" or it.details.get("fatal") is not False:
                yield Sign(t_us, "dead", _cause(it), it.rank, it.source)
        elif it.name == "watchdog_timeout":
            yield Sign(t_us, "alive", "watchdog_timeout", it.rank, it.source)


def _cause(it: Happened) -> str:
    kind = it.details.get("type") or it.details.get("why")
    return f"{it.name}: {kind}" if kind and it.name == "exception" else it.name
