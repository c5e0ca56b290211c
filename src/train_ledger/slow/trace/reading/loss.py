"""What of a trace could not be read?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Losses"]


@dataclass(slots=True)
class Losses:
    """How often, by reason, and at which byte of the text first; `events` are those that are missing.

    `piece_at` is where the piece begins that is being read.
    """

    by_reason: Counter[str] = field(default_factory=Counter)
    events: int = 0
    piece_at: int = 0
    first_at: dict[str, int] = field(default_factory=dict)

    def count(self, reason: str, times: int = 1, *, events: int = 0, at: int | None = None) -> None:
        """Something could not be read, and so many events with it; `at` is its place in the piece."""
        self.by_reason[reason] += times
        self.events += events
        if at is not None:
            self.first_at.setdefault(reason, self.piece_at + at)

    def in_words(self) -> tuple[str, ...]:
        """One phrase a reason, the most frequent first."""
        return tuple(
            (reason if times == 1 else f"{times} × {reason}") + self._where(reason)
            for reason, times in self.by_reason.most_common()
        )

    def _where(self, reason: str) -> str:
        return f" (first near byte {self.first_at[reason]:,})" if reason in self.first_at else ""
