"""What do all the logs in these folders say of ranks, collectives and GPUs?

Streams files of any size: a piece in which none of the words stands that any reader looks for is only
counted through. Of several attempts below one folder the last is read. Answers are wanted within seconds, so
that of logs of many gigabytes their starts and ends are read. Whatever is not read is counted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from train_ledger.headway import counted
from train_ledger.sources.files.stream import Skipped
from train_ledger.sources.logs.kernel_log import KernelFault
from train_ledger.sources.logs.log_file import LogFile
from train_ledger.sources.logs.said import Said
from train_ledger.sources.logs.torchrun import Ended, LogPlace, place_of
from train_ledger.sources.logs.traceback import Raised

__all__ = ["LogReading", "read_log_files"]

_Of = TypeVar("_Of", Said, Raised)

_BUDGET_BYTES = 128 << 20
_LEAST_BYTES = 64 << 10
_MOST_FILES = 100_000
_MOST_STATEMENTS = 200_000


@dataclass(frozen=True, slots=True)
class LogReading:
    """All that was found; each statement once, however often it was repeated.

    `written_t` is when each rank's own log was written last (unix seconds; ranks without a log of their own
    are missing). `skipped` says in words what was not read.
    """

    said: tuple[Said, ...] = ()
    kernel: tuple[KernelFault, ...] = ()
    raised: tuple[Raised, ...] = ()
    ended: tuple[Ended, ...] = ()
    written_t: Mapping[int, float] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()


def read_log_files(
    paths: Sequence[Path],
    *,
    attempt: int | None = None,
    until_t: float | None = None,
    budget_bytes: int = _BUDGET_BYTES,
) -> LogReading:
    """What the files, and all files below the folders, say.

    `attempt` picks one of torchrun's attempts (None: the last of each folder); what was written after
    `until_t` (unix seconds) is left out, by the time of its line, else by that of its file. Of all files
    together about `budget_bytes` are read. Raises nothing for what is in files or happens to them.
    """
    reader = _Reader(until_t)
    found = sorted(dict.fromkeys(_files(paths, reader.skipped)))
    chosen = list(_of_attempt(found, attempt, reader.skipped))
    share = max(_LEAST_BYTES, budget_bytes // max(1, len(chosen)))
    for path, place in counted(chosen, "reading logs", "files"):
        reader.read(path, place, share)
    return reader.reading()


def _files(paths: Iterable[Path], skipped: Skipped) -> Iterator[Path]:
    seen = 0
    inside_of = [f"{os.path.realpath(path)}{os.sep}" for path in paths]

    def told(link: Path) -> None:
        if not f"{os.path.realpath(link)}{os.sep}".startswith(tuple(inside_of)):
            skipped.count("is a link to a folder, not followed", str(link))

    for path in paths:
        folders = os.walk(
            path, onerror=lambda error: skipped.count(error.strerror or "unread", str(error.filename))
        )
        inside = (it for folder, below, names in folders for it in _in_folder(folder, below, names, told))
        for file in inside if path.is_dir() else [path]:
            seen += 1
            if seen > _MOST_FILES:
                skipped.count(f"is beyond the first {_MOST_FILES} files", str(file))
            elif not file.name.startswith("."):
                yield file


def _in_folder(
    folder: str, below: Iterable[str], names: Iterable[str], linked: Callable[[Path], None]
) -> Iterator[Path]:
    """The files; a link to a folder is not followed, for it may lead round in a circle, and told."""
    for name in below:
        if os.path.islink(os.path.join(folder, name)):
            linked(Path(folder, name))
    yield from (Path(folder, name) for name in names)


def _of_attempt(
    files: Sequence[Path], attempt: int | None, skipped: Skipped
) -> Iterator[tuple[Path, LogPlace]]:
    """Files of the attempt that counts below each folder, and those that are of none.

    Agents of several hosts count their attempts on their own: only the one whose rank failed counts it.
    """
    places = [(path, place_of(path)) for path in files]
    last: dict[Path, int] = {}
    for path, it in places:
        if it.attempt is not None:
            last[_above(path)] = max(it.attempt, last.get(_above(path), 0))
    for path, it in places:
        if it.attempt is None or it.attempt == (last[_above(path)] if attempt is None else attempt):
            yield path, it
        else:
            skipped.count("is of another attempt than the one that is read", str(path))


def _above(path: Path) -> Path:
    """The folder that the attempts lie in."""
    return next((it.parent for it in path.parents if it.name.startswith("attempt_")), path.parent)


class _Reader:
    def __init__(self, until_t: float | None) -> None:
        self.skipped = Skipped()
        self._until_t = until_t
        self._is_later = False
        self._said: dict[Said, Said] = {}
        self._kernel: dict[KernelFault, None] = {}
        self._raised: list[Raised] = []
        self._ended: dict[Ended, None] = {}
        self._written_t: dict[int, float] = {}
        self._left_out_bytes = 0
        self._left_out_files = 0
        self._local: dict[int, list[str]] = {}
        self._ranks_of: dict[str, set[int]] = {}
        self._named: set[str] = set()
        self._written: dict[str, float] = {}

    def read(self, path: Path, place: LogPlace, most_bytes: int) -> None:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wake its writer
                self.skip("is no regular file", str(path))
                return
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            with open(fd, "rb", buffering=0) as file:
                status = os.fstat(fd)
                self._is_later = self._until_t is not None and status.st_mtime > self._until_t
                one = LogFile(self, str(path), place, status.st_mtime)
                one.run(file, status.st_size, most_bytes)
                self._finish(str(path), place, status.st_mtime, one)
        except OSError as error:
            self.skip(error.strerror or "is not readable", str(path))

    def skip(self, what: str, where: str) -> None:
        self.skipped.count(what, where)

    def leave_out(self, length: int) -> None:
        self._left_out_bytes += length
        self._left_out_files += 1

    def keep(self, said: Said) -> None:
        if self._is_too_late(said.t) and said.kind != "setting":
            return
        if len(self._said) >= _MOST_STATEMENTS:
            self.skip(f"says more than {_MOST_STATEMENTS} things together with the others", said.source)
            return
        self._said.setdefault(replace(said, t=None, source="", ran_ms=None), said)

    def _is_too_late(self, t: float | None) -> bool:
        """By its own time, else by that of its file."""
        if t is None or self._until_t is None:
            return self._is_later
        return t > self._until_t

    def keep_kernel(self, fault: KernelFault) -> None:
        if self._is_too_late(fault.t):
            return
        if len(self._kernel) < _MOST_STATEMENTS:
            self._kernel.setdefault(replace(fault, source=fault.source.rpartition(":")[0]))
        else:
            self.skip(f"has more than {_MOST_STATEMENTS} faults together with the others", fault.source)

    def _finish(self, name: str, place: LogPlace, written_t: float, own: LogFile) -> None:
        if not self._is_too_late(None):
            self._raised += own.raised
            self._ended.update(dict.fromkeys(own.epilogue.ended))
        if place.local_rank is not None and place.rank is None:
            self._local.setdefault(place.local_rank, []).append(name)
        self._ranks_of[name] = own.ranks | ({place.rank} if place.rank is not None else set())
        if place.rank is not None:
            self._named.add(name)
        self._written[name] = written_t

    def _skipped(self) -> Iterator[str]:
        if self._left_out_files:
            yield (
                f"{self._left_out_bytes / 2**20:.0f} MiB in the middle of {self._left_out_files} long files "
                "left out, their starts and ends read"
            )
        for what, times in self.skipped.items():
            where = self.skipped.where[what]
            yield f"{where}: {what}" + (f", and {times - 1} more like it" if times > 1 else "")

    def reading(self) -> LogReading:
        whose = self._whose()
        for name, rank in whose.items():
            self._written_t[rank] = max(self._written[name], self._written_t.get(rank, 0.0))
        return LogReading(
            tuple(_owned(it, whose) for it in self._said.values()),
            tuple(self._kernel),
            tuple(_owned(it, whose) for it in self._raised),
            tuple(self._ended),
            self._written_t,
            tuple(self._skipped()),
        )

    def _whose(self) -> dict[str, int]:
        """Whose the logs are: by their names, by what stands in them, or by the local rank of one host.

        One log in which one rank alone has a name may be everybody's; where each of several logs names
        another rank, each is that rank's.
        """
        single = {name: min(ranks) for name, ranks in self._ranks_of.items() if len(ranks) == 1}
        told = {rank for name, rank in single.items() if name not in self._named}
        whose = {name: rank for name, rank in single.items() if name in self._named or len(told) > 1}
        hosts = max((len({Path(it).parent for it in names}) for names in self._local.values()), default=0)
        for local_rank, names in self._local.items():
            for name in names if hosts == 1 else ():
                whose.setdefault(name, local_rank)
        return whose


def _owned(it: _Of, whose: Mapping[str, int]) -> _Of:
    rank = whose.get(it.source.rpartition(":")[0]) if it.rank is None else None
    return it if rank is None else replace(it, rank=rank)
