"""Which whole lines stand in this open file that were not there at the last look?

A stream is one file by its identity – device, inode and content – whatever name it has at the moment. It
keeps what is behind the last newline until the rest of that line comes, notices that the file was cut or
written anew in place (by its size, and by the bytes at its start and before the place reached), and steps
over the NULs that a writer which kept its old position leaves after a truncation.
"""

from __future__ import annotations

import os
import time

from train_ledger.sources.files.block import LINE_LIMIT_BYTES, Block, Line
from train_ledger.sources.files.cutter import LineCutter, Skipped
from train_ledger.sources.files.positions import PROOF_BYTES, Identity, Position, Tail, holds

__all__ = ["LINE_LIMIT_BYTES", "Block", "Line", "Skipped", "Stream"]

_SETTLED_S = 2.0
"""A file can change twice within one tick of its file system's clock, which need not be ours."""


class Stream:
    """The lines of one open regular file; `skipped` counts, by reason, what could not be read.

    Owns the descriptor: call `close`. Reads with pread, so that the descriptor may be shared.
    """

    __slots__ = (
        "_changed_s",
        "_cutter",
        "_fd",
        "_foot",
        "_head",
        "_leap",
        "_looked",
        "_offset",
        "_settled",
        "_whole",
        "_whole_foot",
        "size",
    )

    def __init__(self, fd: int, name: str, skipped: Skipped) -> None:
        self._fd = fd
        self._cutter = LineCutter(name, skipped)
        self.size = 0
        self._looked: tuple[int, int] | None = None
        self._changed_s = 0.0
        self._settled = False
        self._start()

    def _start(self) -> None:
        self._offset = self._whole = 0
        self._head = self._foot = self._whole_foot = b""
        self._cutter.start()
        self._leap: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The path by which the file was seen last."""
        return self._cutter.name

    @name.setter
    def name(self, name: str) -> None:
        self._cutter.name = name

    @property
    def skipped(self) -> Skipped:
        return self._cutter.skipped

    @property
    def left_out_bytes(self) -> int:
        """Bytes that `start_at_tail` passed over."""
        return self._cutter.left_out_bytes

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
            tail=self._cutter.tail,
            number=self._cutter.number,
            since=self._cutter.since,
            beheaded=self._cutter.beheaded,
            left_out_bytes=self.left_out_bytes,
        )

    def resume(self, position: Position) -> bool:
        """Go on at a position, where the file proves to be its own; raises OSError as `look` does."""
        reached = position.reached(self._fd)
        if reached is None:
            return False
        self._offset, self._foot = position.offset, position.foot
        self._whole, self._whole_foot = position.whole, position.whole_foot
        self._head = position.head
        cutter = self._cutter
        cutter.number, cutter.since, cutter.beheaded = position.number, position.since, position.beheaded
        cutter.tail, cutter.left_out_bytes = position.tail, position.left_out_bytes
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
        self._cutter.back_to_whole_line()
        self._offset, self._foot = self._whole, self._whole_foot
        self._head = self._head[: self._whole]

    def _goes_on(self, offset: int, foot: bytes) -> bool:
        """Whether what was read is still there; a size alone may be an old one (NFS caches it)."""
        return holds(self._fd, offset, self._head, foot) if foot else self.size >= offset

    def start_over(self) -> None:
        """Read the file from its start: it is not the one that it was."""
        self._cutter.skipped.count("truncated", self.name)
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
        blocks = self._cutter.blocks(chunk, self._offset)
        self._note_whole(chunk)
        if len(self._head) < PROOF_BYTES and self._offset == len(self._head):
            self._head += chunk[: PROOF_BYTES - len(self._head)]
        self._foot = (self._foot + chunk[-PROOF_BYTES:])[-PROOF_BYTES:]
        self._offset += len(chunk)
        if self._leap and self._offset >= self._leap[0]:
            self._leap_to(self._leap[1])
        return blocks

    def _note_whole(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n") + 1
        if end:
            self._whole = self._offset + end
            self._whole_foot = (self._foot + chunk[max(0, end - PROOF_BYTES) : end])[-PROOF_BYTES:]

    def _up_to_leap(self, limit: int) -> int:
        return min(limit, self._leap[0] - self._offset) if self._leap else limit

    def _leap_to(self, offset: int) -> None:
        self._cutter.leap(self._whole, offset)
        self._offset = self._whole = offset
        self._foot = self._whole_foot = b""
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
        self._cutter.skipped.count("nul_bytes", self._cutter.next_place, hole_bytes)
        self._offset += hole_bytes
        self._foot = bytes(min(PROOF_BYTES, hole_bytes))
        self.give_up_tail()

    def give_up_tail(self) -> None:
        """Count an unfinished last line as torn: nobody will finish it."""
        self._cutter.give_up_tail()

    def close(self) -> None:
        os.close(self._fd)
