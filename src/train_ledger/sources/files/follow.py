"""What was written to files that other programs append to, rotate, cut, delete and make anew?

Nothing is asked of the writer and no notification is needed: each poll looks at the names (NFS and Lustre
have no inotify) and reads what is new. A file is known by its device and inode and held open, so that one
which is renamed or deleted is read to its end, and one that comes back under an old name is a new one. What
cannot be read – a directory or FIFO named like a log, a dangling link, a file without permission, one that
vanished between two looks – is counted by reason in `skipped` once, and never raises.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from train_ledger.sources.files.beginnings import Beginnings
from train_ledger.sources.files.followed import Followed, Name, Order, identity_of, is_regular, opened
from train_ledger.sources.files.parts import Parts
from train_ledger.sources.files.positions import Identity, Position, Start
from train_ledger.sources.files.stream import Block, Line, Skipped, Stream
from train_ledger.sources.files.trouble import Troubles

__all__ = ["DRAIN_S", "Follower"]

_POLL_BYTES = 8 << 20
_SHARE_BYTES = 64 << 10
DRAIN_S = 60.0


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
        self._files: dict[Identity, Followed] = {}
        self._lost: dict[Identity, Order] = {}
        self._looks = 0
        self._last_series = -1
        self._beginnings = Beginnings()
        self._parts = Parts()
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
        self._beginnings = Beginnings(start)

    def paths(self) -> list[str]:
        """The files of these names that are there now, opened or not."""
        return [name.path for name in self._names()]

    def positions(self) -> tuple[Position, ...]:
        """Where each file stands that has a name; of use once `caught_up`."""
        return tuple(followed.position for followed in self._files.values() if followed.named)

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

    def _in_turn(self, news: list[Followed]) -> list[Followed]:
        """Beginning with the series after the one that was read last, since a poll may not get through."""
        news.sort(key=lambda followed: followed.order)
        start = bisect_right(news, self._last_series, key=lambda followed: followed.order[0])
        return news[start:] + news[:start]

    def _read(self, followed: Followed, share: int) -> list[Block]:
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

    def _look(self) -> list[Followed]:
        """The files that have something new."""
        names = self._names()
        self._looks += 1
        if self._all_named and self._parts.will_do(names) and not self._part_has_news(names):
            return []
        for followed in self._files.values():
            followed.named = False
        news = [followed for followed in map(self._look_at, names) if followed]
        unnamed = [followed for followed in self._files.values() if not followed.named]
        news += [followed for followed in unnamed if self._look_at_unnamed(followed)]
        self._all_named = not unnamed
        if names:
            self._beginnings.first_look_is_over()
        if news:
            self._parts.has_news()
        return news

    def _part_has_news(self, names: Sequence[Name]) -> bool:
        files = len(self._files)
        return any(self._look_at(name) for name in self._parts.next(names)) or len(self._files) != files

    def _look_at(self, name: Name) -> Followed | None:
        try:
            status = os.stat(name.path)
            followed = self._files.get(identity_of(status))
            if followed is None:
                followed, status = self._open(name, status)
            if followed is None or (followed.named and followed.name != name):
                return None  # not to be read, or a second name of a file that has its turn already
            followed.found_as(name)
            news = followed.stream.look(status)
        except OSError as error:
            self.troubles.met(name.path, error, may_be_absent=name.path == str(self.path))
            return None
        if news:
            return followed  # whether it can be read, too, is seen when it is
        self.troubles.over(name.path)
        return None

    def _open(self, name: Name, status: os.stat_result) -> tuple[Followed | None, os.stat_result]:
        if not is_regular(status):  # before opening, which would wake the writer of a FIFO
            self.troubles.count(name.path, "not_a_file", "is no regular file")
            return None, status
        fd, status = opened(name.path)
        identity = identity_of(status)
        if not is_regular(status) or identity in self._files:  # swapped between the two looks
            os.close(fd)
            return None, status
        order = self._lost.pop(identity, None) or (name.series, self._looks, name)
        followed = Followed(Stream(fd, name.path, self.skipped), name, identity, order)
        self._files[identity] = followed
        self._beginnings.resume(followed)
        return followed, status

    def _look_at_unnamed(self, followed: Followed) -> bool:
        """Whether a file that lost its name has news; silent for long, it is let go."""
        try:
            if followed.stream.look():
                followed.quiet_since = None
                return True
        except OSError as error:
            self.troubles.met(followed.name.path, error)
            self._forget(followed)
            return False
        if followed.quiet_s() >= self._drain_s:
            self._forget(followed)
        return False

    # -- what went wrong

    def _lose(self, followed: Followed, error: OSError) -> None:
        """Let a file go that cannot be read now, and remember how far it was read."""
        self.troubles.met(followed.name.path, error)
        self._beginnings.keep(followed.position)
        self._lost[followed.identity] = followed.order
        self._drop(followed)

    def _forget(self, followed: Followed) -> None:
        followed.stream.give_up_tail()
        self._drop(followed)

    def _drop(self, followed: Followed) -> None:
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
