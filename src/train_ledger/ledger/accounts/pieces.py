"""Into which categories does a time of the run fall?

`Ledger` is a row of pieces of whole microseconds without a gap: what is written begins where the last one
ended, so that the sum is the wall time whatever is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Piece", "Row"]


@dataclass(slots=True)
class Piece:
    """Time of one category; `world_size` None: not known, 0: no GPU was held."""

    category: str
    since_us: int
    until_us: int
    attempt: int | None = None
    world_size: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    why: str = ""

    def follows(self, other: Piece) -> bool:
        """Whether it is the same as the one before it, gone on."""
        return (self.category, self.attempt, self.world_size, self.why) == (
            other.category,
            other.attempt,
            other.world_size,
            other.why,
        )


class Row:
    """Pieces from `since_us` on; `at_us` is how far they reach."""

    def __init__(self, since_us: int) -> None:
        self.pieces: list[Piece] = []
        self.at_us = since_us
        self.attempt: int | None = None
        self.world_size: int | None = None

    def write(
        self, category: str, until_us: int, why: str = "", steps: tuple[int, int] | None = None
    ) -> None:
        """From where the row ends to `until_us`; nothing where that is no later. `steps` were done in it."""
        if until_us <= self.at_us:
            return
        first, last = steps or (None, None)
        piece = Piece(category, self.at_us, until_us, self.attempt, self.world_size, first, last, why)
        before = self.pieces[-1] if self.pieces else None
        if before is not None and piece.follows(before):
            before.until_us = until_us
            before.first_step = before.first_step if before.first_step is not None else first
            before.last_step = last if last is not None else before.last_step
        else:
            self.pieces.append(piece)
        self.at_us = until_us

    def within(self, since_us: int, until_us: int) -> Iterator[Piece]:
        """The pieces of a time, cut to it."""
        for it in self.pieces:
            if it.until_us > since_us and it.since_us < until_us:
                yield Piece(
                    it.category,
                    max(since_us, it.since_us),
                    min(until_us, it.until_us),
                    it.attempt,
                    it.world_size,
                    it.first_step,
                    it.last_step,
                    it.why,
                )
