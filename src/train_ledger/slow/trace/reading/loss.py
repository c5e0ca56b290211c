"""What of a trace could not be read?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Losses"]


@dataclass(slots=True)
class Losses:
    """How often, by reason; `lost` counts those by which events are missing, and not only parts of them."""

    by_reason: Counter[str] = field(default_factory=Counter)
    events: int = 0

    def count(self, reason: str, times: int = 1, *, events: int = 0) -> None:
        """Something could not be read, and so many events with it."""
        self.by_reason[reason] += times
        self.events += events

    def in_words(self) -> tuple[str, ...]:
        """One phrase a reason, the most frequent first."""
        return tuple(
            reason if times == 1 else f"{times} × {reason}" for reason, times in self.by_reason.most_common()
        )
