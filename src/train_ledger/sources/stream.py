"""Which whole lines stand in this open file that were not there at the last look?

A stream is one file by its identity – device, inode and content – whatever name it has at the moment. It
keeps what is behind the last newline until the rest of that line comes, notices that the file was cut or
written anew in place (by its size, and by the bytes at its start and before the place reached), and steps
over the NULs that a writer which kept its old position leaves after a truncation.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator

import msgspec

__all__ = ["LINE_LIMIT_BYTES", "Block", "Line", "Skipped", "Stream"]

LINE_LIMIT_BYTES = 1 << 20
_PROOF_BYTES = 64
_FRESH_NS = 1_000_000_000


class Line(msgspec.Struct, frozen=True, gc=False):
    """One whole line without its newline; `number` counts from 1 in the file as it is now."""

    file: str
    number: int
    data: bytes


class Block(msgspec.Struct, frozen=True, gc=False):
    """Whole lines that follow each other, joined by newlines and without the last one's.

    `number` is that of the first line. `data` holds at least one line, which may be empty, no NUL, and no
    line longer than `LINE_LIMIT_BYTES`.
    """

    file: str
    number: int
    data: bytes

    def lines(self) -> Iterator[Line]:
        """Its lines one by one."""
        for number, data in enumerate(self.data.split(b"\n"), self.number):
            yield Line(self.file, number, data)


class Skipped(Counter[str]):
    """What could not be read, by reason; `where` tells of each where it was met last."""

    def __init__(self) -> None:
        super().__init__()
        self.where: dict[str, str] = {}

    def count(self, reason: str, where: str, times: int = 1) -> None:
        self[reason] += times
        self.where[reason] = where


class Stream:
    """The lines of one open regular file; `skipped` counts, by reason, what could not be read.

    Owns the descriptor: call `close`. Reads with pread, so that the descriptor may be shared.
    """

    __slots__ = (
        "_fd",
        "_foot",
        "_head",
        "_looked",
        "_number",
        "_offset",
        "_overlong",
        "_tail",
        "name",
        "size",
        "skipped",
    )

    def __init__(self, fd: int, name: str, skipped: Skipped) -> None:
        self._fd = fd
        self.name = name
        self.skipped = skipped
        self.size = 0
        self._looked: tuple[int, int] | None = None
        self._start()

    def _start(self) -> None:
        self._offset = 0
        self._number = 0
        self._tail = b""
        self._head = b""
        self._foot = b""
        self._overlong = False

    @property
    def unread_bytes(self) -> int:
        """Bytes that were there at the last look and have not been read."""
        return max(0, self.size - self._offset)

    def look(self, status: os.stat_result | None = None) -> bool:
        """Whether there may be something new; `status` spares a system call where it is known.

        Raises OSError where the file system no longer knows the file (ESTALE).
        """
        status = status or os.fstat(self._fd)
        looked = (status.st_size, status.st_mtime_ns)
        if looked == self._looked:
            return self.unread_bytes > 0
        # Within one tick of the file system's clock a file can change and keep its time and its size.
        fresh = abs(time.time_ns() - status.st_mtime_ns) < _FRESH_NS
        self._looked = None if fresh else looked
        self.size = status.st_size
        if not self._goes_on():
            self._start_over()
        return self.unread_bytes > 0

    def _goes_on(self) -> bool:
        """Whether what was read is still there; a size alone may be an old one (NFS caches it)."""
        if not self._foot:
            return self.size >= self._offset
        foot_at = self._offset - len(self._foot)
        return (
            self._bytes_at(foot_at, len(self._foot)) == self._foot
            and self._bytes_at(0, len(self._head)) == self._head
        )

    def _bytes_at(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, length, offset) if length else b""

    def _start_over(self) -> None:
        self.skipped.count("truncated", self.name)
        self.give_up_tail()
        self._start()

    def read_blocks(self, limit: int) -> list[Block]:
        """The lines completed within the next `limit` bytes; raises OSError as `look` does.

        Usually they are one block, for which no line is looked at by itself.
        """
        chunk = os.pread(self._fd, limit, self._offset)
        if not chunk:
            self.size = self._offset
            return []
        if chunk.endswith(b"\0"):
            chunk = self._before_open_end(chunk, limit)
        self._offset += len(chunk)
        if len(self._head) < _PROOF_BYTES and self._offset - len(chunk) == len(self._head):
            self._head += chunk[: _PROOF_BYTES - len(self._head)]
        self._foot = (self._foot + chunk[-_PROOF_BYTES:])[-_PROOF_BYTES:]
        return self._blocks(chunk)

    def _before_open_end(self, chunk: bytes, limit: int) -> bytes:
        """The chunk without NULs that end the file: the data may not have arrived there yet (NFS)."""
        kept = chunk.rstrip(b"\0")
        if self._offset + len(chunk) >= self.size:
            self.size = self._offset + len(kept)
        elif not kept:
            self._jump_hole(len(chunk))
        else:
            return chunk
        return kept

    def _jump_hole(self, length: int) -> None:
        try:
            data_at = os.lseek(self._fd, self._offset, os.SEEK_DATA)
        except OSError:  # no such call on this file system, or a hole up to the end
            data_at = 0
        self.skipped.count("nul_bytes", self._next_place(), max(length, data_at - self._offset))
        self._offset = max(self._offset + length, data_at)
        self._foot = b""
        self.give_up_tail()

    def _blocks(self, chunk: bytes) -> list[Block]:
        end = chunk.rfind(b"\n")
        if end < 0:
            self._keep(self._tail + chunk)
            return []
        data = self._tail + chunk[:end] if self._tail else chunk[:end]
        first = self._number + 1
        self._number += data.count(b"\n") + 1
        if self._overlong or b"\0" in chunk or _holds_overlong_line(data):
            blocks = self._careful(first, data.split(b"\n"))
        else:
            blocks = [Block(self.name, first, data)]
        self._keep(chunk[end + 1 :])
        return blocks

    def _keep(self, tail: bytes) -> None:
        if b"\0" in tail:
            tail = self._after_nuls(tail)
        self._tail = b"" if self._overlong else tail
        if len(self._tail) > LINE_LIMIT_BYTES:
            self.skipped.count("too_long", self._next_place())
            self._overlong = True
            self._tail = b""

    def _after_nuls(self, line: bytes) -> bytes:
        """What stands behind the last NUL: what is before it was cut off by a truncation."""
        cut_off, _, rest = line.rpartition(b"\0")
        self.skipped.count("nul_bytes", self.name, line.count(b"\0"))
        if cut_off.strip(b"\0"):
            self.skipped.count("torn", self.name)
        return rest

    def _careful(self, first: int, pieces: list[bytes]) -> list[Block]:
        """A block for each line: they may hold NULs or be too long, or the first be the rest of one."""
        blocks = []
        for number, piece in enumerate(pieces, first):
            if self._overlong:
                self._overlong = False
                continue
            data = self._after_nuls(piece) if b"\0" in piece else piece
            if len(data) > LINE_LIMIT_BYTES:
                self.skipped.count("too_long", f"{self.name}:{number}")
            elif data or not piece:
                blocks.append(Block(self.name, number, data))
        return blocks

    def give_up_tail(self) -> None:
        """Count an unfinished last line as torn: nobody will finish it."""
        if self._tail:
            self.skipped.count("torn", self._next_place())
            self._tail = b""

    def _next_place(self) -> str:
        return f"{self.name}:{self._number + 1}"

    def close(self) -> None:
        os.close(self._fd)


def _holds_overlong_line(data: bytes) -> bool:
    """Looks at the newlines that matter alone: the last one within each step of the limit's width."""
    start = 0
    while len(data) - start > LINE_LIMIT_BYTES:
        newline = data.rfind(b"\n", start, start + LINE_LIMIT_BYTES + 1)
        if newline < 0:
            return True
        start = newline + 1
    return False
