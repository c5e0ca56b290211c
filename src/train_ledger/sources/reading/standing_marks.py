"""Which marks of which formats stand in a line?

Lines repeat their shapes – themselves without their digits – and a mark stands in a line only where the mark
without its digits stands in the shape. So the few marks that a shape can hold are found out once, and each of
its lines is searched for these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from train_ledger.sources.reading.wanted_lines import DIGITS, SHAPE_BYTES

__all__ = ["StandingMarks", "standing_marks_of"]

_MOST_SHAPES = 4096

_Places = tuple[tuple[int, tuple[bytes, ...]], ...]


class StandingMarks:
    """The marks of several formats, each known by its place among them.

    >>> marks = StandingMarks([(b"step=", b"loss 2"), (b"NCCL",), (b"loss ",)])
    >>> marks.of(b"step=10 loss 3")
    ((0, (b'step=',)), (2, (b'loss ',)))
    """

    def __init__(self, of_formats: Sequence[Sequence[bytes]]) -> None:
        self._of_formats = tuple(
            (place, tuple((mark, mark.translate(None, DIGITS)) for mark in marks))
            for place, marks in enumerate(of_formats)
            if marks
        )
        self._possible: dict[bytes, _Places] = {}

    def of(self, line: bytes) -> _Places:
        """The places of the formats of which a mark stands in the line, in order, each with those that do."""
        found = ((place, tuple(mark for mark in marks if mark in line)) for place, marks in self._in(line))
        return tuple((place, marks) for place, marks in found if marks)

    def places(self, line: bytes) -> list[int]:
        """The same without the marks.

        >>> StandingMarks([(b"step=", b"loss 2"), (b"NCCL",), (b"loss ",)]).places(b"step=10 loss 3")
        [0, 2]
        """
        found = []
        for place, marks in self._in(line):
            for mark in marks:
                if mark in line:
                    found.append(place)
                    break
        return found

    def _in(self, line: bytes) -> _Places:
        shape = line.translate(None, DIGITS)
        possible = self._possible.get(shape)
        return possible if possible is not None else self._possible_in(shape)

    def _possible_in(self, shape: bytes) -> _Places:
        found = (
            (place, tuple(mark for mark, needle in marks if needle in shape))
            for place, marks in self._of_formats
        )
        possible = tuple((place, marks) for place, marks in found if marks)
        if len(shape) <= SHAPE_BYTES:
            if len(self._possible) >= _MOST_SHAPES:
                self._possible.clear()
            self._possible[shape] = possible
        return possible


@cache
def standing_marks_of(of_formats: tuple[tuple[bytes, ...], ...]) -> StandingMarks:
    """One for all files that are read for the same formats."""
    return StandingMarks(of_formats)
