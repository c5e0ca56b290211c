"""What stands at the end of a rank's files, or before a given step or time?

The lines of a rank are in the order of time, so nothing is scanned: the end is read backwards, and an earlier
place is found by halves. How many bytes that takes does not grow with the length of the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

__all__ = ["Beyond", "Key", "RankFiles"]

_PROBE_BYTES = 4096
_NEAR_BYTES = 16 << 10
_LONGEST_LINE_BYTES = 1 << 20


class Key(msgspec.Struct, gc=False):
    """What of a line says where it stands."""

    t: float | None = None
    step: int | None = None
    attempt: int = 0
    event: str = ""


Beyond = Callable[[Key], bool | None]
"""Whether a line lies behind the wanted end; None where it does not say."""

_decode = msgspec.json.Decoder(Key).decode


class RankFiles:
    """One rank's file and those that it was rotated into, oldest first, as one row of bytes.

    `read_bytes` counts what was read. Raises OSError where a file cannot be opened.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.read_bytes = 0
        self._parts: list[tuple[int, int, int]] = []
        self.size = 0
        try:
            for path in paths:
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
                length = os.fstat(fd).st_size
                self._parts.append((self.size, length, fd))
                self.size += length
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        for _, _, fd in self._parts:
            os.close(fd)
        self._parts = []

    def __enter__(self) -> RankFiles:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`."""
        pieces = []
        for begin, length, fd in self._parts:
            low, high = max(start, begin), min(end, begin + length)
            if low < high:
                pieces.append(os.pread(fd, high - low, low - begin))
        data = b"".join(pieces)
        self.read_bytes += len(data)
        return data

    def line_start(self, offset: int) -> int:
        """Where the first line begins that does not begin before `offset`; the size where none does."""
        if offset <= 0:
            return 0
        at = offset - 1
        while at < self.size:
            data = self.read(at, at + _PROBE_BYTES)
            if not data:
                break
            found = data.find(b"\n")
            if found >= 0:
                return at + found + 1
            at += len(data)
        return self.size

    def whole_end(self) -> int:
        """Where the last whole line ends: behind it a line may just be written."""
        end = self.size
        while end > 0:
            start = max(0, end - _PROBE_BYTES)
            found = self.read(start, end).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
        return 0

    def end_before(self, beyond: Beyond, near_bytes: int = _NEAR_BYTES) -> int:
        """An end such that no line behind it is wanted, and of those before it few are not.

        These are `near_bytes` at most.
        """
        low, high = 0, self.whole_end()
        while high - low > near_bytes:
            middle = (low + high) // 2
            start, side = self._told_from(middle, high, beyond)
            if side is False:
                low = start
            else:  # lines before `start` that do not say stand behind the end, too
                high = middle
        return self.line_start(high)

    def _told_from(self, offset: int, end: int, beyond: Beyond) -> tuple[int, bool | None]:
        """The first line from here on that says on which side it is; (its start, the side)."""
        start = self.line_start(offset)
        limit = min(end, start + _LONGEST_LINE_BYTES)
        while start < limit:
            data = self.read(start, min(limit, start + _PROBE_BYTES))
            lines = data.split(b"\n")
            if len(lines) == 1:
                return start, None
            for line in lines[:-1]:
                if (side := _side(line, beyond)) is not None:
                    return start, side
                start += len(line) + 1
        return start, None


def _side(line: bytes, beyond: Beyond) -> bool | None:
    try:
        return beyond(_decode(line))
    except (msgspec.DecodeError, RecursionError):
        return None
