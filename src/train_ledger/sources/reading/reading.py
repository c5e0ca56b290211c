"""What do these logs say, whoever wrote them?

Files of any known format, folders of them and run directories are read as a stream: facts come out while the
files are read, and what is known of the files themselves once they are.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from train_ledger.facts import Event, Fact, Fault
from train_ledger.run_dir import RunDir
from train_ledger.sources.files.log_source import NotRead, opened, pieces, why_no_text
from train_ledger.sources.formats import DOCUMENTS, Document
from train_ledger.sources.logs.torchrun import LogPlace, place_of
from train_ledger.sources.reading.belonging import (
    IN_A_RUN,
    Belonging,
    by_age,
    host_folder,
    is_run,
    parts_in_order,
)
from train_ledger.sources.reading.fact_reader import FactReader
from train_ledger.sources.reading.incidents import Incidents
from train_ledger.sources.reading.nonfinite import Nonfinite
from train_ledger.sources.reading.program import FormatSeen
from train_ledger.sources.reading.progress import Progress
from train_ledger.sources.reading.share_read import ShareRead

__all__ = ["FactReading", "FileRead", "read_facts"]

_HEAD_BYTES = 4096
_DOCUMENT_BYTES = 256 << 20
_MOST_FILES = 100_000
_NOT_LOGS = frozenset({"comm_traces", "requests", "ledger", "__pycache__"})
"""Folders of a run directory in which no log lies."""


@dataclass(slots=True)
class FileRead:
    """What is known of one file once it was read.

    `told` counts the lines that told something, `survived` the exceptions that training went on after;
    `damaged` counts, by reason, lines of a known format that could not be taken. `last_t` is the newest time
    that stands in it, `last_log_t` that of each rank, in unix seconds. `not_read` says why the file, or its
    rest, was not read.
    """

    path: str
    formats: tuple[FormatSeen, ...] = ()
    lines: int = 0
    told: int = 0
    survived: int = 0
    damaged: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    last_log_t: dict[int, float] = field(default_factory=dict)
    last_t: float | None = None
    not_read: str | None = None
    progress: Progress = field(default_factory=Progress)

    @property
    def of_no_format(self) -> int:
        """Lines that told nothing: of programs that nobody here knows, or of no interest."""
        return self.lines - self.told


class FactReading:
    """The facts of logs, to be iterated over once; `files` and `incidents` are complete afterwards."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.files: list[FileRead] = []
        self.incidents = Incidents()
        self._paths = list(paths)
        self._belonging = Belonging()

    @property
    def last_log_t(self) -> dict[int, float]:
        """When each rank wrote its newest line that tells a time."""
        newest: dict[int, float] = {}
        for file in self.files:
            for rank, t in file.last_log_t.items():
                newest[rank] = max(t, newest.get(rank, t))
        return newest

    def __iter__(self) -> Iterator[Fact]:
        for run in filter(is_run, self._paths):
            for folder in RunDir(run).log_folders():
                self._belonging.include(folder, run)
        every = _files(self._paths, self._miss)
        found = parts_in_order(itertools.islice(every, _MOST_FILES))
        if (beyond := next(every, None)) is not None:
            self._miss(beyond, f"is beyond the first {_MOST_FILES:,} files; name folders one by one")
        places = _places(found)
        share = ShareRead(found)
        for path, place in zip(found, places, strict=True):
            read = FileRead(str(path))
            self.files.append(read)
            try:
                for fact in self._of_file(path, place, read, share):
                    read.progress.add(fact)
                    if isinstance(fact, Fault):
                        self.incidents.add(fact)
                    elif isinstance(fact, Event) and fact.name == "exception":
                        read.survived += fact.details.get("fatal") is False
                    yield fact
            except NotRead as why:
                read.not_read = str(why)
            share.passed(path)

    def _miss(self, path: Path, why: str) -> None:
        self.files.append(FileRead(str(path), not_read=why))

    def _of_file(self, path: Path, place: LogPlace, read: FileRead, share: ShareRead) -> Iterator[Fact]:
        with opened(path) as (file, written_t):
            stream = share.counted(path, file, pieces(file))
            head = _head(stream)
            document = next((it for it in DOCUMENTS if it.fits(head[:_HEAD_BYTES], path.name)), None)
            if document is not None:
                yield from self._of_document(document, path, itertools.chain([head], stream), place, read)
            elif (why := why_no_text(head)) is not None:
                raise NotRead(why)
            else:  # of a pipe the next piece may be long in coming: what there is is told before
                attempts = self._belonging.attempts(path, place)
                reader = FactReader(str(path), place, written_t=written_t, attempts=attempts)
                quiet = [b""] if len(head) < _HEAD_BYTES else []  # whoever writes into a pipe waits
                yield from _streamed(reader, itertools.chain([head], quiet, stream), read)

    def _of_document(
        self, document: Document, path: Path, stream: Iterable[bytes], place: LogPlace, read: FileRead
    ) -> Iterator[Fact]:
        seen = FormatSeen(document.name, document.knows)
        read.formats = (seen,)
        content = _whole(stream)
        read.lines = read.told = content.count(b"\n") + (not content.endswith(b"\n"))
        attempts = self._belonging.attempts(path, place)
        nonfinite = Nonfinite()
        try:
            for fact in document.facts(content, str(path)):
                placed = _placed(fact, place)
                placed = replace(placed, attempt=attempts.of(placed, document.name, alone=True))
                seen.count(placed)
                yield from nonfinite.of(placed)
        except ValueError as error:
            raise NotRead(str(error)) from error


def read_facts(paths: Iterable[Path]) -> FactReading:
    """The facts of files, and of all files below folders; "-" is the standard input.

    Iterate over what this returns, then ask it for `files`. Nothing that stands in a file raises; what cannot
    be read is told by `FileRead.not_read`. What a file tells does not depend on which others are read with
    it, unless they are of one run (`Belonging`).
    """
    return FactReading(paths)


def _streamed(reader: FactReader, stream: Iterable[bytes], read: FileRead) -> Iterator[Fact]:
    try:
        for piece in stream:
            yield from reader.feed(piece) if piece else reader.settle()
    except NotRead as why:
        read.not_read = str(why)
    yield from reader.end()
    read.formats, read.lines, read.told = reader.formats, reader.lines, reader.lines_told
    read.damaged, read.repeated, read.last_log_t = reader.damaged, reader.repeated, reader.last_log_t
    read.last_t = reader.last_t


def _head(stream: Iterator[bytes]) -> bytes:
    """As much as formats are recognised by; a pipe may bring it in small pieces."""
    head = b""
    for piece in stream:
        head += piece
        if len(head) >= _HEAD_BYTES or (head and not piece):
            break
    return head


def _whole(stream: Iterable[bytes]) -> bytes:
    content = bytearray()
    for piece in stream:
        content += piece
        if len(content) > _DOCUMENT_BYTES:
            raise NotRead(f"is larger than {_DOCUMENT_BYTES >> 20} MiB")
    return bytes(content)


def _placed(fact: Fact, place: LogPlace) -> Fact:
    rank = fact.rank if fact.rank is not None else place.rank
    host = fact.host or place.host
    return fact if (rank, host) == (fact.rank, fact.host) else replace(fact, rank=rank, host=host)


_Missed = Callable[[Path, str], None]


def _files(paths: Iterable[Path], missed: _Missed) -> Iterator[Path]:
    for path in paths:
        if str(path) != "-" and path.is_dir():
            seen: set[Path] = set()  # the folder that run.json names may hold the others
            for file in (it for top in _tops(path) for it in _below(top, missed)):
                if file not in seen:
                    seen.add(file)
                    yield file
        else:
            yield path


def _tops(folder: Path) -> list[Path]:
    """Where logs lie in a folder; those of a run directory in the order in which they build on each other."""
    if not is_run(folder):
        return [folder]
    elsewhere = RunDir(folder).log_folders()[1:]
    return [it for it in (*(folder / name for name in IN_A_RUN), *elsewhere) if it.is_dir()]


def _below(top: Path, missed: _Missed) -> Iterator[Path]:
    def unread(error: OSError) -> None:
        missed(Path(error.filename or top), (error.strerror or str(error)).lower())

    for at, below, names in os.walk(top, onerror=unread):
        below[:] = sorted(name for name in below if name not in _NOT_LOGS and not name.startswith("."))
        for link in (Path(at, name) for name in below if os.path.islink(os.path.join(at, name))):
            if not Path(os.path.realpath(link)).is_relative_to(os.path.realpath(top)):
                missed(link, "is a link to a folder, which is not followed; name it to have it read")
        yield from (Path(at, name) for name in sorted(names, key=by_age) if not name.startswith("."))


def _places(paths: Sequence[Path]) -> list[LogPlace]:
    """What the paths tell; the local rank of torchrun's folders is the rank where one host's are read."""
    places = [place_of(path) for path in paths]
    folders: dict[int, set[Path]] = {}
    for path, place in zip(paths, places, strict=True):
        if place.local_rank is not None and place.rank is None:
            folders.setdefault(place.local_rank, set()).add(host_folder(path))
    if max(map(len, folders.values()), default=0) != 1:
        return places
    return [replace(it, rank=it.local_rank) if it.rank is None else it for it in places]
