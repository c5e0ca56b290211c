"""Which file is it that is read under a name, and where does it stand among the others?"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass

from train_ledger.sources.files.positions import Identity, Position
from train_ledger.sources.files.stream import Stream

__all__ = ["Followed", "Name", "Order", "identity_of", "is_regular", "opened"]


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """Where a file stands among others: within one `series` (one writer) lines come in the order of `age`."""

    series: int
    age: int
    path: str


Order = tuple[int, int, Name]
"""A file's series, the look that found it and its name then: renaming makes no file older or newer."""


@dataclass(slots=True)
class Followed:
    """A file that is held open; `named` is whether a name leads to it now, `quiet_since` (monotonic seconds)
    since when one without a name has been silent."""

    stream: Stream
    name: Name
    identity: Identity
    order: Order
    named: bool = False
    quiet_since: float | None = None

    @property
    def position(self) -> Position:
        """Where it stands."""
        return self.stream.position(self.identity)

    def found_as(self, name: Name) -> None:
        """This name leads to it now."""
        if self.name is not name:
            self.name = name
            self.stream.name = name.path
        self.named, self.quiet_since = True, None

    def quiet_s(self) -> float:
        """For how long it has been silent, from the first such look on."""
        now = time.monotonic()
        self.quiet_since = now if self.quiet_since is None else self.quiet_since
        return now - self.quiet_since


def identity_of(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


def opened(path: str) -> tuple[int, os.stat_result]:
    """A descriptor to read a file by, which waits for nobody, and what the file is; raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    return fd, os.fstat(fd)
