"""What do all the logs in these folders say of ranks, collectives and GPUs?

Streams files of any size: a piece in which none of the words stands that any reader looks for is only
counted through. Of several attempts below one folder the last is read. Whatever is not read is counted.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TypeVar

from train_ledger.sources import kernel_log, torchrun, traceback, watchdog
from train_ledger.sources.kernel_log import KernelFault
from train_ledger.sources.log_line import read_line
from train_ledger.sources.torchrun import Ended, Epilogue, LogPlace, place_of
from train_ledger.sources.traceback import Raised, Tracebacks
from train_ledger.sources.watchdog import Said

__all__ = ["LogReading", "read_log_files"]

_Of = TypeVar("_Of", Said, Raised)

_CHUNK_BYTES = 1 << 20
_LINE_BYTES = 64 << 10
_WHOLE_BYTES = 1 << 30
_HEAD_BYTES = 64 << 20
_TAIL_BYTES = 512 << 20
_MOST_FILES = 100_000
_MOST_STATEMENTS = 200_000
_MARKS = (*watchdog.MARKS, *kernel_log.MARKS, *torchrun.MARKS, *traceback.MARKS)


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
    files: int = 0
    skipped: tuple[str, ...] = ()


def read_log_files(
    paths: Sequence[Path], *, attempt: int | None = None, until_t: float | None = None
) -> LogReading:
    """What the files, and all files below the folders, say.

    `attempt` picks one of torchrun's attempts (None: the last of each folder); what was
    written after `until_t` (unix seconds) is left out as far as its lines tell the time. Raises nothing for
    what is in files or happens to them.
    """
    reader = _Reader(until_t)
    found = sorted(dict.fromkeys(_files(paths, reader.skipped)))
    for path, place in _of_attempt(found, attempt):
        reader.read(path, place)
    return reader.reading()


def _files(paths: Iterable[Path], skipped: Counter[str]) -> Iterator[Path]:
    seen = 0
    for path in paths:
        folders = os.walk(path, onerror=lambda error: skipped.update([f"{error.filename}: {error.strerror}"]))
        inside = (Path(folder, name) for folder, _, names in folders for name in names)
        for file in inside if path.is_dir() else [path]:
            seen += 1
            if seen > _MOST_FILES:
                skipped["files beyond the first 100000"] += 1
            elif not file.name.startswith("."):
                yield file


def _of_attempt(files: Sequence[Path], attempt: int | None) -> Iterator[tuple[Path, LogPlace]]:
    """Files of the attempt that counts, and those that are of none."""
    places = [(path, place_of(path)) for path in files]
    last = attempt if attempt is not None else max((it.attempt or 0 for _, it in places), default=0)
    yield from ((path, it) for path, it in places if it.attempt is None or it.attempt == last)


class _Reader:
    def __init__(self, until_t: float | None) -> None:
        self.skipped: Counter[str] = Counter()
        self._until_t = until_t
        self._said: dict[Said, Said] = {}
        self._kernel: dict[KernelFault, None] = {}
        self._raised: list[Raised] = []
        self._ended: dict[Ended, None] = {}
        self._written_t: dict[int, float] = {}
        self._files = 0
        self._local: dict[int, list[str]] = {}
        self._ranks_of: dict[str, set[int]] = {}

    def read(self, path: Path, place: LogPlace) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            with open(fd, "rb", buffering=0) as file:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    self.skipped[f"{path}: is no regular file"] += 1
                    return
                _OneFile(self, str(path), place, status.st_mtime).run(file, status.st_size)
        except OSError as error:
            self.skipped[f"{path}: {error.strerror or error}"] += 1
            return
        self._files += 1

    def keep(self, said: Said) -> None:
        if self._until_t is not None and said.t is not None and said.t > self._until_t:
            return
        if len(self._said) >= _MOST_STATEMENTS:
            self.skipped[f"statements beyond the first {_MOST_STATEMENTS}"] += 1
            return
        self._said.setdefault(replace(said, t=None, source="", ran_ms=None), said)

    def keep_kernel(self, fault: KernelFault) -> None:
        if self._until_t is not None and fault.t is not None and fault.t > self._until_t:
            return
        if len(self._kernel) < _MOST_STATEMENTS:
            self._kernel.setdefault(replace(fault, source=fault.source.rpartition(":")[0]))
        else:
            self.skipped[f"kernel lines beyond the first {_MOST_STATEMENTS}"] += 1

    def finish(self, name: str, place: LogPlace, written_t: float, own: _OneFile) -> None:
        self._raised += own.tracebacks.raised.values()
        self._ended.update(dict.fromkeys(own.epilogue.ended))
        if place.local_rank is not None and place.rank is None:
            self._local.setdefault(place.local_rank, []).append(name)
        self._ranks_of[name] = own.ranks | ({place.rank} if place.rank is not None else set())
        if len(self._ranks_of[name]) == 1:
            (rank,) = self._ranks_of[name]
            self._written_t[rank] = max(written_t, self._written_t.get(rank, 0.0))

    def reading(self) -> LogReading:
        whose = self._whose()
        for name, rank in whose.items():
            self._written_t.setdefault(rank, os.path.getmtime(name) if os.path.exists(name) else 0.0)
        return LogReading(
            tuple(_owned(it, whose) for it in self._said.values()),
            tuple(self._kernel),
            tuple(_owned(it, whose) for it in self._raised),
            tuple(self._ended),
            self._written_t,
            self._files,
            tuple(f"{what} ({times} times)" if times > 1 else what for what, times in self.skipped.items()),
        )

    def _whose(self) -> dict[str, int]:
        """Whose the logs are that say it only by what stands in them, or by the local rank of one host."""
        whose = {name: min(ranks) for name, ranks in self._ranks_of.items() if len(ranks) == 1}
        hosts = max((len({Path(it).parent for it in names}) for names in self._local.values()), default=0)
        for local_rank, names in self._local.items():
            for name in names if hosts == 1 else ():
                whose.setdefault(name, local_rank)
        return whose


def _owned(it: _Of, whose: Mapping[str, int]) -> _Of:
    rank = whose.get(it.source.rpartition(":")[0]) if it.rank is None else None
    return it if rank is None else replace(it, rank=rank)


class _OneFile:
    """One file on its way through all readers."""

    def __init__(self, reader: _Reader, name: str, place: LogPlace, written_t: float) -> None:
        self._reader = reader
        self._name = name
        self._place = place
        self._written_t = written_t
        self._number = 0
        self.tracebacks = Tracebacks()
        self.epilogue = Epilogue()
        self.ranks: set[int] = set()

    def run(self, file: IO[bytes], size: int) -> None:
        if size > _WHOLE_BYTES:
            left_out = size - _HEAD_BYTES - _TAIL_BYTES
            self._reader.skipped[f"{self._name}: {left_out >> 20} MiB in its middle"] += 1
            self._pieces(file, _HEAD_BYTES)
            file.seek(size - _TAIL_BYTES)
            self._number = -1 << 40
        self._pieces(file, size)
        self._reader.finish(self._name, self._place, self._written_t, self)

    def _pieces(self, file: IO[bytes], limit: int) -> None:
        rest = b""
        while limit > 0 and (chunk := file.read(min(_CHUNK_BYTES, limit))):
            if not self._number and b"\0" in chunk[:4096]:
                self._reader.skipped[f"{self._name}: is no text"] += 1
                return
            limit -= len(chunk)
            whole, _, tail = (rest + chunk).rpartition(b"\n")
            if len(tail) > _LINE_BYTES:
                self._reader.skipped[f"{self._name}: a line longer than {_LINE_BYTES >> 10} KiB, cut"] += 1
                whole, tail = (whole + b"\n" if whole else b"") + tail, b""
            rest = tail
            self._lines(whole)
        self._lines(rest)

    def _lines(self, block: bytes) -> None:
        if not block:
            return
        if not self.tracebacks.wants_more and not any(mark in block for mark in _MARKS):
            self._number += block.count(b"\n") + 1
            return
        for line in block.split(b"\n"):
            self._number += 1
            for piece in line.split(b"\r") if b"\r" in line else (line,):
                self._line(piece)

    def _line(self, line: bytes) -> None:
        wanted = self.tracebacks.wants_more or any(mark in line for mark in _MARKS)
        if not wanted or not line:
            return
        line = line[:_LINE_BYTES]
        source = f"{self._name}:{self._number}" if self._number > 0 else f"{self._name}:?"
        rank = self._place.rank
        for said in watchdog.said_in(line, rank=rank, written_t=self._written_t, source=source):
            self._reader.keep(said)
        fault = kernel_log.kernel_fault(line, host=self._place.host, written_t=self._written_t, source=source)
        if fault is not None:
            self._reader.keep_kernel(fault)
            return
        taken = read_line(line)
        if taken.rank is not None:
            self.ranks.add(taken.rank)
        self.tracebacks.add(replace(taken, rank=taken.rank if taken.rank is not None else rank), source)
        self.epilogue.add(taken.text, source)
