"""Which lines of a log does anybody want?

Logs repeat themselves: most lines differ from earlier ones in nothing but numbers. A line without its digits
is its shape, and whether a shape can be wanted is found out once. What stands around the wanted lines is
counted and never looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["DIGITS", "LINE_BYTES", "SHAPE_BYTES", "Shapes", "WantedLines", "needles_of"]

LINE_BYTES = 64 << 10
"""Of a longer line the rest is not looked at."""

DIGITS = b"0123456789"
SHAPE_BYTES = 512
"""Longer shapes are not remembered."""
_MOST_SHAPES = 20_000


def needles_of(marks: Iterable[bytes]) -> tuple[bytes, ...]:
    """The marks as they stand in shapes, without those that hold another one: where they stand, it does.

    >>> needles_of([b"step: ", b"global_step: ", b"|E2E latency="])
    (b'step: ', b'|EE latency=')
    """
    kept: list[bytes] = []
    for mark in sorted({mark.translate(None, DIGITS) for mark in marks}, key=lambda it: (len(it), it)):
        if not any(it in mark for it in kept):
            kept.append(mark)
    return tuple(kept)


class Shapes:
    """Which shapes of lines can be wanted for these marks; of use to all files that are read for them."""

    def __init__(self, marks: Iterable[bytes]) -> None:
        self.needles = needles_of(marks)
        self._unwanted: set[bytes] = set()
        self._wanted: set[bytes] = set()

    def wanted_of(self, shapes: set[bytes]) -> set[bytes]:
        """Those of the shapes in which a mark stands."""
        wanted = shapes & self._wanted
        unknown = shapes - wanted
        unknown -= self._unwanted
        if unknown:
            news = self._with_needle(unknown)
            wanted |= news
            self._remember(news, unknown - news)
        return wanted

    def _with_needle(self, shapes: set[bytes]) -> set[bytes]:
        joined = b"\n".join(shapes)
        standing = [needle for needle in self.needles if needle in joined]
        return {shape for shape in shapes if any(map(shape.__contains__, standing))} if standing else set()

    def _remember(self, wanted: set[bytes], unwanted: set[bytes]) -> None:
        if len(self._unwanted) + len(self._wanted) > _MOST_SHAPES:
            self._unwanted.clear()
            self._wanted.clear()
        self._wanted.update(shape for shape in wanted if len(shape) <= SHAPE_BYTES)
        self._unwanted.update(shape for shape in unwanted if len(shape) <= SHAPE_BYTES)


class WantedLines:
    """Cuts the wanted lines out of the blocks of one file, and counts all lines.

    A line may be handed on in whose shape a mark stands and in itself none. `wants_more` is asked after each
    line: while it is true, the next one is wanted whatever stands in it.
    """

    def __init__(self, shapes: Shapes, wants_more: Callable[[], bool]) -> None:
        self._shapes = shapes
        self._wants_more = wants_more
        self.lines = 0

    def of(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        """(number, line) of each wanted line of a block of whole lines, the last newline left off."""
        before, places = self.lines, self._places(block)
        if places or self._wants_more():
            for place, line in self._cut(block.split(b"\n"), places):
                self.lines = before + place + 1
                yield self.lines, line
        self.lines = before + block.count(b"\n") + 1

    def _places(self, block: bytes) -> list[int]:
        """The places of lines whose shapes can be wanted."""
        if not self._shapes.needles:
            return []
        shapes = block.translate(None, DIGITS).split(b"\n")
        wanted = self._shapes.wanted_of(set(shapes))
        return [place for place, shape in enumerate(shapes) if shape in wanted] if wanted else []

    def _cut(self, lines: Sequence[bytes], places: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at < len(lines):
            if not self._wants_more():
                place = bisect_left(places, at)
                if place == len(places):
                    return
                at = places[place]
            yield at, lines[at]
            at += 1
