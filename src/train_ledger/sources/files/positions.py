"""Where did a reader stop in each file, and where does one begin that was never there before?

A position holds for a file only while the bytes at the file's start and those before the position prove that
it is the same one: device numbers change when a machine starts anew, inodes are used again, names move on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

__all__ = ["PROOF_BYTES", "Identity", "Known", "Position", "Start", "Tail", "holds"]

PROOF_BYTES = 64
_SMALLEST_SHARE_BYTES = 32 << 10

Identity = tuple[int, int]
"""(device, inode) of a file."""


_Place = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Position(msgspec.Struct, frozen=True):
    """A place in one file up to which everything was handed on, but for `tail`, the begin of a line.

    `head` are the file's first bytes, `foot` those before `offset`, `whole_foot` those before `whole`, where
    the last whole line ended. `number` and `since` count lines as `Line` does; `beheaded` says that the rest
    of the line that is being read is to be dropped.
    """

    path: str
    device: int
    inode: int
    offset: _Place
    head: bytes
    foot: bytes
    whole: _Place = 0
    whole_foot: bytes = b""
    tail: bytes = b""
    number: _Place = 0
    since: _Place = 0
    beheaded: bool = False
    left_out_bytes: _Place = 0

    def reached(self, fd: int) -> int | None:
        """`offset`, or `whole` where what stood behind that was cut off; None where it is another file.

        Raises OSError where the file cannot be read.
        """
        if (self.foot or not self.offset) and holds(fd, self.offset, self.head, self.foot):
            return self.offset
        if self.whole_foot and holds(fd, self.whole, self.head, self.whole_foot):
            return self.whole
        return None


def holds(fd: int, offset: int, head: bytes, foot: bytes) -> bool:
    """Whether the open file has these bytes at its start and before `offset`; raises OSError."""
    own_head = head[:offset]
    return os.pread(fd, len(foot), offset - len(foot)) == foot and os.pread(fd, len(own_head), 0) == own_head


class Known:
    """The positions that wait for their files to be opened."""

    def __init__(self, positions: Iterable[Position] = ()) -> None:
        self._positions = list(positions)

    def __bool__(self) -> bool:
        return bool(self._positions)

    def add(self, position: Position) -> None:
        self._positions.append(position)

    def clear(self) -> None:
        self._positions.clear()

    def of(self, identity: Identity, path: str) -> Iterator[Position]:
        """Those that this file may have: of the same identity, of the same inode, of the same name."""
        for fits in (
            lambda it: (it.device, it.inode) == identity,
            lambda it: it.inode == identity[1] and it.device != identity[0],
            lambda it: it.inode != identity[1] and it.path == path,
        ):
            yield from [position for position in self._positions if fits(position)]

    def drop(self, position: Position) -> None:
        self._positions.remove(position)

    def fit(self, paths: Iterable[str]) -> bool:
        """Whether any of these files is one of those that the positions speak of."""
        return any(self._fits(path) for path in paths)

    def _fits(self, path: str) -> bool:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            return False
        try:
            status = os.fstat(fd)
            positions = self.of((status.st_dev, status.st_ino), path)
            return any(it.reached(fd) is not None for it in positions)
        except OSError:
            return False
        finally:
            os.close(fd)


@dataclass(frozen=True, slots=True)
class Tail:
    """How much is read of a file that is not read whole: its first lines and its last ones.

    The last ones begin with the nearest line that holds `marker`, where one stands at most `near_bytes`
    further up.
    """

    last_bytes: int
    near_bytes: int = 0
    marker: bytes = b""
    head_bytes: int = 4096


@dataclass(frozen=True, slots=True)
class Start:
    """Where a follower begins: in `known` files where it stopped, in those that come later at their start.

    Of the others that are there at the first look, together more than `whole_bytes`, each gets a share of as
    many bytes (None: all are read whole).
    """

    known: tuple[Position, ...] = ()
    whole_bytes: int | None = None
    marker: bytes = b""

    def tail(self, sizes: Iterable[int]) -> Tail | None:
        """How files of these sizes are read; None where they are read whole."""
        lengths = list(sizes)
        if self.whole_bytes is None or sum(lengths) <= self.whole_bytes:
            return None
        half = max(_SMALLEST_SHARE_BYTES, self.whole_bytes // len(lengths)) // 2
        return Tail(half, half if self.marker else 0, self.marker)
