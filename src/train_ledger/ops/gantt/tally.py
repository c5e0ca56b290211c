"""What was drawn, and what was not read?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Tally"]


@dataclass(slots=True)
class Tally:
    """Counts over all ranks. `not_read` counts lines and files by reason, `where` has each reason's last."""

    ranks: set[int] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    attempts: set[int] = field(default_factory=set)
    steps: int = 0
    spans: int = 0
    unfinished: int = 0
    faults: int = 0
    lines: int = 0
    read_bytes: int = 0
    not_read: Counter[str] = field(default_factory=Counter)
    where: dict[str, str] = field(default_factory=dict)

    def miss(self, reason: str, where: str, times: int = 1) -> None:
        self.not_read[reason] += times
        self.where[reason] = where

    @property
    def not_read_lines(self) -> tuple[str, ...]:
        """In words, one phrase a reason: how many, and where the last of them is."""
        return tuple(
            f"{number} × {reason} ({self.where[reason]})" for reason, number in sorted(self.not_read.items())
        )
