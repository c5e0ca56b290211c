"""What was written to files that other programs append to, rotate, cut, delete and make anew?

Nothing is asked of the writer and no notification is needed: each poll looks at the names (NFS and Lustre
have no inotify) and reads what is new. A file is known by its device and inode and held open, so that one
which is renamed or deleted is read to its end, and one that comes back under an old name is a new one. What
cannot be read – a directory or FIFO named like a log, a dangling link, a file without permission, one that
vanished between two looks – is counted by reason in `skipped` once, and never raises.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from train_ledger.sources.stream import Block, Line, Skipped, Stream

__all__ = ["FolderFollower", "Follower", "Name"]

_POLL_BYTES = 8 << 20
_SHARE_BYTES = 64 << 10
_DRAIN_S = 60.0
_REASONS = {
    errno.EACCES: "unreadable",
    errno.EPERM: "unreadable",
    errno.EMFILE: "too_many_open_files",
    errno.ENFILE: "too_many_open_files",
    errno.ESTALE: "stale",
    errno.ENOTDIR: "not_a_folder",
}

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """Where a file stands among others: within one `series` (one writer) lines come in the order of `age`."""

    series: int
    age: int
    path: str


@dataclass(slots=True)
class _Followed:
    stream: Stream
    name: Name
    named: bool = True
    quiet_since: float | None = None

    @property
    def order(self) -> tuple[int, bool, Name]:
        """Within a series a file that lost its name is older than those that have one."""
        return self.name.series, self.named, self.name


class Follower:
    """Whole lines of the file at `path`, each once, through rotation, truncation and re-creation.

    A rotated file is followed to its end; `drain_s` is for how long after it lost its name a silent one is
    still listened to. Lines that are cut away before a poll saw them are lost to any reader.
    """

    def __init__(self, path: str | os.PathLike[str], *, drain_s: float = _DRAIN_S) -> None:
        self.path = Path(path)
        self.skipped = Skipped()
        self.last_problem: str | None = None
        self._drain_s = drain_s
        self._files: dict[Identity, _Followed] = {}
        self._troubles: dict[str, str] = {}
        self._last_series = -1

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
    def lag_bytes(self) -> int:
        """Bytes that the last poll saw and left unread."""
        return sum(followed.stream.unread_bytes for followed in self._files.values())

    @property
    def caught_up(self) -> bool:
        """Whether the last poll read everything that was there."""
        return self.lag_bytes == 0

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
            series, stream = followed.name.series, followed.stream
            if series not in waiting:
                left -= min(share, stream.unread_bytes)
                self._last_series = series
                blocks += self._read(followed, share)
            if stream.unread_bytes:
                waiting.add(series)
        return blocks

    def _in_turn(self, news: list[_Followed]) -> list[_Followed]:
        """Beginning with the series after the one that was read last, since a poll may not get through."""
        news.sort(key=lambda followed: followed.order)
        start = bisect_right(news, self._last_series, key=lambda followed: followed.name.series)
        return news[start:] + news[:start]

    def _read(self, followed: _Followed, share: int) -> list[Block]:
        try:
            return followed.stream.read_blocks(share)
        except OSError as error:
            self._trouble(followed.name.path, error)
            self._forget(followed)
            return []

    # -- which files there are

    def _names(self) -> Iterator[Name]:
        yield Name(0, 0, str(self.path))

    def _look(self) -> list[_Followed]:
        """The files that have something new."""
        for followed in self._files.values():
            followed.named = False
        news = []
        for name in self._names():
            followed_here = self._look_at(name)
            if followed_here:
                news.append(followed_here)
        unnamed = [followed for followed in self._files.values() if not followed.named]
        return news + [followed for followed in unnamed if self._look_at_unnamed(followed)]

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
            self._trouble(name.path, error)
            return None
        if self._troubles:
            self._troubles.pop(name.path, None)
        return followed if news else None

    def _open(self, name: Name, status: os.stat_result) -> tuple[_Followed | None, os.stat_result]:
        if not stat.S_ISREG(status.st_mode):  # before opening, which would wake the writer of a FIFO
            self._count(name.path, "not_a_file", "is no regular file")
            return None, status
        fd = os.open(name.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        status = os.fstat(fd)
        identity = (status.st_dev, status.st_ino)
        if not stat.S_ISREG(status.st_mode) or identity in self._files:  # swapped between the two looks
            os.close(fd)
            return None, status
        followed = _Followed(Stream(fd, name.path, self.skipped), name, named=False)
        self._files[identity] = followed
        return followed, status

    def _look_at_unnamed(self, followed: _Followed) -> bool:
        """Whether a file that lost its name has news; silent for long, it is let go."""
        try:
            if followed.stream.look():
                followed.quiet_since = None
                return True
        except OSError as error:
            self._trouble(followed.name.path, error)
            self._forget(followed)
            return False
        now = time.monotonic()
        followed.quiet_since = now if followed.quiet_since is None else followed.quiet_since
        if now - followed.quiet_since >= self._drain_s:
            self._forget(followed)
        return False

    def _forget(self, followed: _Followed) -> None:
        followed.stream.give_up_tail()
        followed.stream.close()
        self._files = {identity: other for identity, other in self._files.items() if other is not followed}

    # -- what went wrong

    def _trouble(self, path: str, error: OSError) -> None:
        if error.errno == errno.ENOENT:
            reason = "dangling_link" if os.path.islink(path) else "vanished"
            if reason == "vanished" and path == str(self.path):
                return  # a file that is not there yet, or is just being rotated
        else:
            reason = _REASONS.get(error.errno or 0, "io_error")
        self._count(path, reason, error.strerror or str(error))

    def _count(self, path: str, reason: str, why: str) -> None:
        if self._troubles.get(path) != reason:
            self._troubles[path] = reason
            self.skipped.count(reason, path)
            self.last_problem = f"{path}: {why}"

    def give_up_tails(self) -> None:
        """Count what is behind the last newline of each file as torn: this reader waits for no more."""
        for followed in self._files.values():
            followed.stream.give_up_tail()

    def close(self) -> None:
        """Close every file; unfinished lines are forgotten."""
        for followed in self._files.values():
            followed.stream.close()
        self._files.clear()


class FolderFollower(Follower):
    """Whole lines of all files in a folder that `place` has a place for.

    `place(file name)` gives (series, age) or None: files of one series are read in the order of age, and a
    rotated file that still matches under its new name is not read again.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        place: Callable[[str], tuple[int, int] | None],
        *,
        drain_s: float = _DRAIN_S,
    ) -> None:
        super().__init__(path, drain_s=drain_s)
        self._place = place
        self._places: dict[str, Name | None] = {}

    def _names(self) -> list[Name]:  # type: ignore[override]
        try:
            found = os.listdir(self.path)
        except OSError as error:
            self._trouble(str(self.path), error)
            return []
        places = {file: self._places[file] if file in self._places else self._named(file) for file in found}
        self._places = places
        return [name for name in places.values() if name]

    def _named(self, file: str) -> Name | None:
        place = self._place(file)
        return Name(*place, str(self.path / file)) if place else None
