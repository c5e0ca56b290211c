"""How fast does the run go over its data?

Counts of samples and tokens go on over restarts, while clocks and sessions do not: a rate is what one attempt
added over the time that it took for that, never the whole count over the time of the last start.
"""

from __future__ import annotations

from dataclasses import dataclass

from train_ledger.ledger.accounts.history import History

__all__ = ["Rate", "rate_of"]


@dataclass(frozen=True, slots=True)
class Rate:
    """So many of `field` (consumed_tokens, consumed_samples) a second, of all ranks together."""

    field: str
    per_s: float


def rate_of(history: History) -> Rate | None:
    """That of the newest attempt that tells two positions; None where none does."""
    laps = sorted({lap for it in history.ranks.values() for lap in it.tapes}, reverse=True)
    for lap in laps:
        for tape in (it.tapes[lap] for it in history.ranks.values() if lap in it.tapes):
            told = tape.positions
            if told.field is None or not told.segments:
                continue
            first, last = told.segments[0], told.segments[-1]
            passed_s = last.until_t - first.t
            if passed_s > 0:
                return Rate(told.field, (last.last_position - first.position) / passed_s)
    return None
