"""Which whole lines does a piece of a file complete?

What is behind the last newline is kept until the rest of that line comes. A line that is too long, or that a
truncation tore, is counted by reason and dropped.
"""

from __future__ import annotations

from collections import Counter

from train_ledger.sources.files.block import LINE_LIMIT_BYTES, Block, Line

__all__ = ["LineCutter", "Skipped"]


class Skipped(Counter[str]):
    """What could not be read, by reason; `where` tells of each where it was met last."""

    def __init__(self) -> None:
        super().__init__()
        self.where: dict[str, str] = {}

    def count(self, reason: str, where: str, times: int = 1) -> None:
        self[reason] += times
        self.where[reason] = where


class LineCutter:
    """Makes blocks of whole lines out of pieces that follow each other in one file.

    `tail` is the begin of a line whose rest is awaited; of one that is `beheaded` the rest is dropped.
    `number` lines were completed since byte `since` of the file, where `left_out_bytes` were passed over.
    """

    __slots__ = ("beheaded", "left_out_bytes", "name", "number", "since", "skipped", "tail")

    def __init__(self, name: str, skipped: Skipped) -> None:
        self.name = name
        self.skipped = skipped
        self.left_out_bytes = 0
        self.start()

    def start(self) -> None:
        """Forget what came before: the next piece is the file's first."""
        self.number = self.since = 0
        self.tail = b""
        self.beheaded = False

    def leap(self, whole: int, offset: int) -> None:
        """The next piece is at `offset`, within any line; lines were completed up to `whole`."""
        self.left_out_bytes += offset - whole
        self.number, self.since = 0, offset
        self.tail = b""
        self.beheaded = True

    def back_to_whole_line(self) -> None:
        """What stood behind the last newline is no longer there."""
        self.give_up_tail()
        self.beheaded = False

    def blocks(self, chunk: bytes, offset: int) -> list[Block]:
        """The lines that a piece completes which stands at `offset`, behind the one that came before."""
        end = chunk.rfind(b"\n")
        if end < 0:
            if not self.beheaded:
                self._keep(self.tail + chunk)
            return []
        data = self._whole_lines(chunk, end, offset)
        first, since = self.number + 1, self.since
        blocks = []
        if data is not None:
            self.number += data.count(b"\n") + 1
            if b"\0" in chunk or _holds_overlong_line(data):
                blocks = self._careful(first, data.split(b"\n"))
            else:
                blocks = [Block(self.name, first, data, since)]
        self._keep(chunk[end + 1 :])
        return blocks

    def _whole_lines(self, chunk: bytes, end: int, offset: int) -> bytes | None:
        """What the newline at `end` of the chunk completes; None where that is only a line to be dropped."""
        if not self.beheaded:
            return self.tail + chunk[:end] if self.tail else chunk[:end]
        start = chunk.index(b"\n") + 1
        self.beheaded = False
        if self.since and not self.number:
            self.left_out_bytes += offset + start - self.since
            self.since = offset + start
        else:
            self.number += 1
        return chunk[start:end] if start <= end else None

    def _keep(self, tail: bytes) -> None:
        if b"\0" in tail:
            tail = self._after_nuls(tail)
        self.tail = tail
        if len(tail) > LINE_LIMIT_BYTES:
            self.skipped.count("too_long", self.next_place)
            self.beheaded = True
            self.tail = b""

    def _after_nuls(self, line: bytes) -> bytes:
        """What stands behind the last NUL: what is before it was cut off by a truncation."""
        cut_off, _, rest = line.rpartition(b"\0")
        self.skipped.count("nul_bytes", self.name, line.count(b"\0"))
        if cut_off.strip(b"\0"):
            self.skipped.count("torn", self.name)
        return rest

    def _careful(self, first: int, pieces: list[bytes]) -> list[Block]:
        """A block for each line, since they may hold NULs or be too long."""
        blocks = []
        for number, piece in enumerate(pieces, first):
            data = self._after_nuls(piece) if b"\0" in piece else piece
            if len(data) > LINE_LIMIT_BYTES:
                self.skipped.count("too_long", f"{self.name}:{number}")
            elif data or not piece:
                blocks.append(Block(self.name, number, data, self.since))
        return blocks

    def give_up_tail(self) -> None:
        """Count an unfinished last line as torn: nobody will finish it."""
        if self.tail:
            self.skipped.count("torn", self.next_place)
            self.tail = b""

    @property
    def next_place(self) -> str:
        """Where the line stands that is completed next."""
        return Line(self.name, self.number + 1, b"", self.since).place


def _holds_overlong_line(data: bytes) -> bool:
    """Looks at the newlines that matter alone: the last one within each step of the limit's width."""
    start = 0
    while len(data) - start > LINE_LIMIT_BYTES:
        newline = data.rfind(b"\n", start, start + LINE_LIMIT_BYTES + 1)
        if newline < 0:
            return True
        start = newline + 1
    return False
