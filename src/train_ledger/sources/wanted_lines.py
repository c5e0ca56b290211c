"""Which lines of a log does anybody want?

Most of a log is passed over: words are looked for in whole blocks, by the machine's own search, and only
lines in which one stands are cut out. What stands around them is counted, never split.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

__all__ = ["LINE_BYTES", "WantedLines", "needles_of"]

LINE_BYTES = 64 << 10
"""Of a longer line the rest is not looked at."""


def needles_of(marks: Iterable[bytes]) -> tuple[bytes, ...]:
    """The marks without those that hold another one: where they stand, that one stands.

    >>> needles_of([b"step: ", b"global_step: ", b"loss"])
    (b'loss', b'step: ')
    """
    kept: list[bytes] = []
    for mark in sorted(set(marks), key=lambda it: (len(it), it)):
        if not any(it in mark for it in kept):
            kept.append(mark)
    return tuple(kept)


class WantedLines:
    """Cuts the wanted lines out of the blocks of one file, and counts all lines.

    `wants_more` is asked after each line: while it is true, the next one is wanted whatever stands in it.
    """

    def __init__(self, marks: Iterable[bytes], wants_more: Callable[[], bool]) -> None:
        self._needles = needles_of(marks)
        self._wants_more = wants_more
        self.lines = 0

    def of(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        """(number, line) of each wanted line of a block of whole lines, the last newline left off."""
        starts = self._starts(block)
        if not starts and not self._wants_more():
            self.lines += block.count(b"\n") + 1
            return
        counted, at, length = 0, 0, len(block)
        while at <= length:
            if not self._wants_more():
                place = bisect_left(starts, at)
                if place == len(starts):
                    break
                at = starts[place]
            end = block.find(b"\n", at)
            end = length if end < 0 else end
            self.lines += block.count(b"\n", counted, at) + 1
            yield self.lines, block[at:end]
            counted = at = end + 1
        if counted <= length:
            self.lines += block.count(b"\n", counted) + 1

    def _starts(self, block: bytes) -> list[int]:
        """Where the lines begin in which a needle stands, in order."""
        found: set[int] = set()
        for needle in self._needles:
            at = block.find(needle)
            while at >= 0:
                found.add(block.rfind(b"\n", 0, at) + 1)
                end = block.find(b"\n", at)
                if end < 0:
                    break
                at = block.find(needle, end)
        return sorted(found)
