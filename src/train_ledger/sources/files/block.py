"""What does a reader of files hand on? Whole lines, many at once."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

__all__ = ["LINE_LIMIT_BYTES", "Block", "Line"]

LINE_LIMIT_BYTES = 1 << 20


class Line(msgspec.Struct, frozen=True, gc=False):
    """One whole line without its newline.

    `number` counts from 1 in the file as it is now, or behind its byte `since` where what is before that was
    left out; `place` says it in words.
    """

    file: str
    number: int
    data: bytes
    since: int = 0

    @property
    def place(self) -> str:
        """Where the line stands.

        >>> Line("rank_00005.jsonl", 17, b"").place, Line("rank_00005.jsonl", 17, b"", since=4096).place
        ('rank_00005.jsonl:17', 'rank_00005.jsonl@4096:17')
        """
        return f"{self.file}@{self.since}:{self.number}" if self.since else f"{self.file}:{self.number}"


class Block(msgspec.Struct, frozen=True, gc=False):
    """Whole lines that follow each other, joined by newlines and without the last one's.

    `number` is that of the first line, `since` as in `Line`. `data` holds at least one line, which may be
    empty, no NUL, and no line longer than `LINE_LIMIT_BYTES`.
    """

    file: str
    number: int
    data: bytes
    since: int = 0

    def lines(self) -> Iterator[Line]:
        """Its lines one by one."""
        for number, data in enumerate(self.data.split(b"\n"), self.number):
            yield Line(self.file, number, data, self.since)
