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

from train_ledger.sources.block import LINE_LIMIT_BYTES, Block, Line
from train_ledger.sources.positions import PROOF_BYTES, Identity, Position, Tail, holds

__all__ = ["LINE_LIMIT_BYTES", "Block", "Line", "Skipped", "Stream"]

_SETTLED_S = 2.0
"""A file can change twice within one tick of its file system's clock, which need not be ours."""


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
    `left_out_bytes` counts what `start_at_tail` passed over.
    """

    __slots__ = (
        "_beheaded",
        "_changed_s",
        "_fd",
        "_foot",
        "_head",
        "_leap",
        "_looked",
        "_number",
        "_offset",
        "_settled",
        "_since",
        "_tail",
        "_whole",
        "_whole_foot",
        "left_out_bytes",
        "name",
        "size",
        "skipped",
    )

    def __init__(self, fd: int, name: str, skipped: Skipped) -> None:
        self._fd = fd
        self.name = name
        self.skipped = skipped
        self.size = 0
        self.left_out_bytes = 0
        self._looked: tuple[int, int] | None = None
        self._changed_s = 0.0
        self._settled = False
        self._start()

    def _start(self) -> None:
        self._offset = self._whole = 0
        self._number = self._since = 0
        self._tail = self._head = self._foot = self._whole_foot = b""
        self._beheaded = False
        self._leap: tuple[int, int] | None = None

    @property
    def unread_bytes(self) -> int:
        """Bytes that were there at the last look and have not been read."""
        return max(0, self.size - self._offset)

    # -- where reading begins

    def start_at_tail(self, tail: Tail) -> None:
        """Leave out the middle of the file as it was at the last look; call it before anything is read."""
        to = self.size - tail.last_bytes - 1
        if to > tail.head_bytes:
            to = self._marked(to, tail)
        if to > tail.head_bytes:
            self._leap = (tail.head_bytes, to)

    def _marked(self, to: int, tail: Tail) -> int:
        """The end of the line before the nearest marked one, else `to`."""
        since = max(0, to - tail.near_bytes)
        above = os.pread(self._fd, to - since, since)
        marked = above.rfind(tail.marker) if tail.marker else -1
        newline = above.rfind(b"\n", 0, marked) if marked >= 0 else -1
        return since + newline if newline >= 0 else to

    def position(self, identity: Identity) -> Position:
        """Where this stream stands, to `resume` there in another life."""
        return Position(
            path=self.name,
            device=identity[0],
            inode=identity[1],
            offset=self._offset,
            head=self._head,
            foot=self._foot,
            whole=self._whole,
            whole_foot=self._whole_foot,
            tail=self._tail,
            number=self._number,
            since=self._since,
            beheaded=self._beheaded,
            left_out_bytes=self.left_out_bytes,
        )

    def resume(self, position: Position) -> bool:
        """Go on at a position, where the file proves to be its own; raises OSError as `look` does."""
        reached = position.reached(self._fd)
        if reached is None:
            return False
        self._offset, self._foot = position.offset, position.foot
        self._whole, self._whole_foot = position.whole, position.whole_foot
        self._head, self._tail = position.head, position.tail
        self._number, self._since, self._beheaded = position.number, position.since, position.beheaded
        self.left_out_bytes = position.left_out_bytes
        if reached < position.offset:
            self._back_to_whole_line()
        return True

    # -- whether there is something new

    def look(self, status: os.stat_result | None = None) -> bool:
        """Whether there may be something new; `status` spares a system call where it is known.

        Raises OSError where the file system no longer knows the file (ESTALE).
        """
        status = status or os.fstat(self._fd)
        looked = (status.st_size, status.st_mtime_ns)
        if looked == self._looked and self._settled:
            return self.unread_bytes > 0
        now = time.monotonic()
        if looked != self._looked:
            self._looked, self._changed_s = looked, now
        self._settled = now - self._changed_s >= _SETTLED_S
        self.size = status.st_size
        self._check()
        return self.unread_bytes > 0

    def _check(self) -> None:
        """Go back where what was read is no longer there: to the last whole line, or to the start."""
        if self._goes_on(self._offset, self._foot):
            return
        if self._whole_foot and self._whole < self._offset and self._goes_on(self._whole, self._whole_foot):
            self._back_to_whole_line()
        else:
            self.start_over()

    def _back_to_whole_line(self) -> None:
        """What stood behind the last newline was cut off, or is being written anew."""
        self.give_up_tail()
        self._beheaded = False
        self._offset, self._foot = self._whole, self._whole_foot
        self._head = self._head[: self._whole]

    def _goes_on(self, offset: int, foot: bytes) -> bool:
        """Whether what was read is still there; a size alone may be an old one (NFS caches it)."""
        return holds(self._fd, offset, self._head, foot) if foot else self.size >= offset

    def start_over(self) -> None:
        """Read the file from its start: it is not the one that it was."""
        self.skipped.count("truncated", self.name)
        self.give_up_tail()
        self._start()

    # -- what it is

    def read_blocks(self, limit: int) -> list[Block]:
        """The lines completed within the next `limit` bytes; raises OSError as `look` does.

        Usually they are one block, for which no line is looked at by itself.
        """
        chunk = os.pread(self._fd, self._up_to_leap(limit), self._offset)
        if not self._goes_on(self._offset, self._foot):
            self._check()  # cut since the last look: the chunk is of another content
            return []
        if not chunk:
            self.size, self._looked = self._offset, None  # NFS may know of bytes that it does not have yet
            return []
        if chunk.endswith(b"\0"):
            chunk = self._before_open_end(chunk, limit)
        blocks = self._blocks(chunk)
        if len(self._head) < PROOF_BYTES and self._offset == len(self._head):
            self._head += chunk[: PROOF_BYTES - len(self._head)]
        self._foot = (self._foot + chunk[-PROOF_BYTES:])[-PROOF_BYTES:]
        self._offset += len(chunk)
        if self._leap and self._offset >= self._leap[0]:
            self._leap_to(self._leap[1])
        return blocks

    def _up_to_leap(self, limit: int) -> int:
        return min(limit, self._leap[0] - self._offset) if self._leap else limit

    def _leap_to(self, offset: int) -> None:
        self.left_out_bytes += offset - self._whole
        self._number, self._since = 0, offset
        self._offset = self._whole = offset
        self._tail = self._foot = self._whole_foot = b""
        self._beheaded = True
        self._leap = None

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
        hole_bytes = max(length, data_at - self._offset)
        self.skipped.count("nul_bytes", self._next_place(), hole_bytes)
        self._offset += hole_bytes
        self._foot = bytes(min(PROOF_BYTES, hole_bytes))
        self.give_up_tail()

    def _blocks(self, chunk: bytes) -> list[Block]:
        end = chunk.rfind(b"\n")
        if end < 0:
            if not self._beheaded:
                self._keep(self._tail + chunk)
            return []
        data = self._whole_lines(chunk, end)
        first, since = self._number + 1, self._since
        blocks = []
        if data is not None:
            self._number += data.count(b"\n") + 1
            if b"\0" in chunk or _holds_overlong_line(data):
                blocks = self._careful(first, data.split(b"\n"))
            else:
                blocks = [Block(self.name, first, data, since)]
        self._keep(chunk[end + 1 :])
        return blocks

    def _whole_lines(self, chunk: bytes, end: int) -> bytes | None:
        """What the newline at `end` of the chunk completes; None where that is only a line to be dropped."""
        self._whole = self._offset + end + 1
        self._whole_foot = (self._foot + chunk[max(0, end + 1 - PROOF_BYTES) : end + 1])[-PROOF_BYTES:]
        if not self._beheaded:
            return self._tail + chunk[:end] if self._tail else chunk[:end]
        start = chunk.index(b"\n") + 1
        self._beheaded = False
        if self._since and not self._number:
            self.left_out_bytes += self._offset + start - self._since
            self._since = self._offset + start
        else:
            self._number += 1
        return chunk[start:end] if start <= end else None

    def _keep(self, tail: bytes) -> None:
        if b"\0" in tail:
            tail = self._after_nuls(tail)
        self._tail = tail
        if len(tail) > LINE_LIMIT_BYTES:
            self.skipped.count("too_long", self._next_place())
            self._beheaded = True
            self._tail = b""

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
                blocks.append(Block(self.name, number, data, self._since))
        return blocks

    def give_up_tail(self) -> None:
        """Count an unfinished last line as torn: nobody will finish it."""
        if self._tail:
            self.skipped.count("torn", self._next_place())
            self._tail = b""

    def _next_place(self) -> str:
        return Line(self.name, self._number + 1, b"", self._since).place

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
