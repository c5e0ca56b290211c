"""What was written to files that other programs append to, rotate, cut, delete and make anew?

Nothing is asked of the writer and no notification is needed: each poll looks at the names (NFS and Lustre
have no inotify) and reads what is new. A file is known by its device and inode and held open, so that one
which is renamed or deleted is read to its end, and one that comes back under an old name is a new one. What
cannot be read – a directory or FIFO named like a log, a dangling link, a file without permission, one that
vanished between two looks – is counted by reason in `skipped` once, and never raises.
"""

from __future__ import annotations

import os
import stat
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from train_ledger.sources.files.positions import Identity, Known, Position, Start
from train_ledger.sources.files.stream import Block, Line, Skipped, Stream
from train_ledger.sources.files.trouble import Troubles

__all__ = ["DRAIN_S", "Follower", "Name"]

_POLL_BYTES = 8 << 20
_SHARE_BYTES = 64 << 10
DRAIN_S = 60.0

_QUIET_S = 5.0
_PARTS = 4
_FEW_FILES = 64
"""So few are all looked at in each poll. Of more, while all are silent, a part is: the first that speaks up
brings back all the others at once, since ranks write together."""


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """Where a file stands among others: within one `series` (one writer) lines come in the order of `age`."""

    series: int
    age: int
    path: str


Order = tuple[int, int, Name]
"""A file's series, the look that found it and its name then: renaming makes no file older or newer."""


@dataclass(slots=True)
class _Followed:
    stream: Stream
    name: Name
    identity: Identity
    order: Order
    named: bool = True
    quiet_since: float | None = None


class Follower:
    """Whole lines of the file at `path`, each once, through rotation, truncation and re-creation.

    A rotated file is followed to its end; `drain_s` is for how long after it lost its name a silent one is
    still listened to. Lines that are cut away before a poll saw them are lost to any reader. `read_bytes`
    counts those of the lines that were handed on.
    """

    def __init__(self, path: str | os.PathLike[str], *, drain_s: float = DRAIN_S) -> None:
        self.path = Path(path)
        self.skipped = Skipped()
        self.troubles = Troubles(self.skipped)
        self.read_bytes = 0
        self._is_behind = False
        self._drain_s = drain_s
        self._files: dict[Identity, _Followed] = {}
        self._lost: dict[Identity, Order] = {}
        self._looks = 0
        self._last_series = -1
        self._start = Start()
        self._known = Known()
        self._unknown: list[Stream] | None = []
        self._news_s = time.monotonic()
        self._part = 0
        self._all_named = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    @property
    def files(self) -> int:
        """How many files are held open."""
        return len(self._files)

    @property
    def last_problem(self) -> str | None:
        """The newest trouble with a file, in words."""
        return self.troubles.last

    @property
    def lag_bytes(self) -> int:
        """Bytes that the last poll saw and left unread."""
        return sum(followed.stream.unread_bytes for followed in self._files.values())

    @property
    def left_out_bytes(self) -> int:
        """Bytes of the files held open that are never read, since reading began behind them."""
        return sum(followed.stream.left_out_bytes for followed in self._files.values())

    @property
    def caught_up(self) -> bool:
        """Whether the last poll read everything that was there."""
        return not self._is_behind

    def begin(self, start: Start) -> None:
        """Where reading begins in the files that are there at the first poll; call it before that."""
        self._start = start
        self._known = Known(start.known)

    def paths(self) -> list[str]:
        """The files of these names that are there now, opened or not."""
        return [name.path for name in self._names()]

    def positions(self) -> tuple[Position, ...]:
        """Where each file stands that has a name; of use once `caught_up`."""
        files = self._files.values()
        return tuple(followed.stream.position(followed.identity) for followed in files if followed.named)

    def poll(self, max_bytes: int = _POLL_BYTES) -> list[Line]:
        """The lines of `poll_blocks`, one by one."""
        return [line for block in self.poll_blocks(max_bytes) for line in block.lines()]

    def poll_blocks(self, max_bytes: int = _POLL_BYTES) -> list[Block]:
        """The lines completed since the last poll, older files of a series first; reads about `max_bytes`.

        Where there is more than that, every file gets its share, so that no rank runs ahead of the others.
        """
        news = self._look()
        share = max(_SHARE_BYTES, max_bytes // max(1, len(news)))
        blocks: list[Block] = []
        waiting: set[int] = set()
        left = max_bytes
        for followed in self._in_turn(news):
            if left <= 0:
                break
            series, stream = followed.order[0], followed.stream
            if series not in waiting:
                left -= min(share, stream.unread_bytes)
                self._last_series = series
                blocks += self._read(followed, share)
            if stream.unread_bytes:
                waiting.add(series)
        self._is_behind = any(followed.stream.unread_bytes for followed in news)
        return blocks

    def _in_turn(self, news: list[_Followed]) -> list[_Followed]:
        """Beginning with the series after the one that was read last, since a poll may not get through."""
        news.sort(key=lambda followed: followed.order)
        start = bisect_right(news, self._last_series, key=lambda followed: followed.order[0])
        return news[start:] + news[:start]

    def _read(self, followed: _Followed, share: int) -> list[Block]:
        try:
            blocks = followed.stream.read_blocks(share)
        except OSError as error:
            self._lose(followed, error)
            return []
        self.troubles.over(followed.name.path)
        self.read_bytes += sum(len(block.data) + 1 for block in blocks)
        return blocks

    # -- which files there are

    def _names(self) -> Sequence[Name]:
        return [Name(0, 0, str(self.path))]

    def _look(self) -> list[_Followed]:
        """The files that have something new."""
        names = self._names()
        self._looks += 1
        if self._is_quiet(names) and not self._part_has_news(names):
            return []
        for followed in self._files.values():
            followed.named = False
        news = [followed for followed in map(self._look_at, names) if followed]
        unnamed = [followed for followed in self._files.values() if not followed.named]
        news += [followed for followed in unnamed if self._look_at_unnamed(followed)]
        self._all_named = not unnamed
        if names:
            self._begin_unknown()
        if news:
            self._news_s = time.monotonic()
        return news

    def _is_quiet(self, names: Sequence[Name]) -> bool:
        """Whether a look at a part of the files will do."""
        many = len(names) > _FEW_FILES and self._all_named
        return many and time.monotonic() - self._news_s > _QUIET_S

    def _part_has_news(self, names: Sequence[Name]) -> bool:
        self._part = (self._part + 1) % _PARTS
        files = len(self._files)
        return any(self._look_at(name) for name in names[self._part :: _PARTS]) or len(self._files) != files

    def _look_at(self, name: Name) -> _Followed | None:
        try:
            status = os.stat(name.path)
            followed = self._files.get((status.st_dev, status.st_ino))
            if followed is None:
                followed, status = self._open(name, status)
            if followed is None or (followed.named and followed.name != name):
                return None  # not to be read, or a second name of a file that has its turn already
            if followed.name is not name:
                followed.name = name
                followed.stream.name = name.path
            followed.named, followed.quiet_since = True, None
            news = followed.stream.look(status)
        except OSError as error:
            self.troubles.met(name.path, error, may_be_absent=name.path == str(self.path))
            return None
        if news:
            return followed  # whether it can be read, too, is seen when it is
        self.troubles.over(name.path)
        return None

    def _open(self, name: Name, status: os.stat_result) -> tuple[_Followed | None, os.stat_result]:
        if not stat.S_ISREG(status.st_mode):  # before opening, which would wake the writer of a FIFO
            self.troubles.count(name.path, "not_a_file", "is no regular file")
            return None, status
        fd = os.open(name.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        status = os.fstat(fd)
        identity = (status.st_dev, status.st_ino)
        if not stat.S_ISREG(status.st_mode) or identity in self._files:  # swapped between the two looks
            os.close(fd)
            return None, status
        order = self._lost.pop(identity, None) or (name.series, self._looks, name)
        followed = _Followed(Stream(fd, name.path, self.skipped), name, identity, order, named=False)
        self._files[identity] = followed
        self._resume(followed)
        return followed, status

    def _look_at_unnamed(self, followed: _Followed) -> bool:
        """Whether a file that lost its name has news; silent for long, it is let go."""
        try:
            if followed.stream.look():
                followed.quiet_since = None
                return True
        except OSError as error:
            self.troubles.met(followed.name.path, error)
            self._forget(followed)
            return False
        now = time.monotonic()
        followed.quiet_since = now if followed.quiet_since is None else followed.quiet_since
        if now - followed.quiet_since >= self._drain_s:
            self._forget(followed)
        return False

    # -- where reading begins

    def _resume(self, followed: _Followed) -> None:
        """Go on where an earlier reader of this file stopped; what nobody knows is new."""
        known = list(self._known.of(followed.identity, followed.name.path))
        fitting = next((position for position in known if followed.stream.resume(position)), None)
        if fitting:
            self._known.drop(fitting)
        elif any((position.device, position.inode) == followed.identity for position in known):
            followed.stream.start_over()
        elif self._unknown is not None:
            self._unknown.append(followed.stream)

    def _begin_unknown(self) -> None:
        """After the first look that found files: where reading begins in those that nobody knows."""
        if self._unknown is None:
            return
        tail = self._start.tail(stream.size for stream in self._unknown)
        if tail:
            for stream in self._unknown:
                stream.start_at_tail(tail)
        self._unknown = None
        self._known.clear()

    # -- what went wrong

    def _lose(self, followed: _Followed, error: OSError) -> None:
        """Let a file go that cannot be read now, and remember how far it was read."""
        self.troubles.met(followed.name.path, error)
        self._known.add(followed.stream.position(followed.identity))
        self._lost[followed.identity] = followed.order
        self._drop(followed)

    def _forget(self, followed: _Followed) -> None:
        followed.stream.give_up_tail()
        self._drop(followed)

    def _drop(self, followed: _Followed) -> None:
        followed.stream.close()
        del self._files[followed.identity]

    def give_up_tails(self) -> None:
        """Count what is behind the last newline of each file as torn: this reader waits for no more."""
        for followed in self._files.values():
            followed.stream.give_up_tail()

    def close(self) -> None:
        """Close every file; unfinished lines are forgotten."""
        for followed in self._files.values():
            followed.stream.close()
        self._files.clear()
