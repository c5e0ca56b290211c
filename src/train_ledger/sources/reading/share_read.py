"""How much of the logs that were named has been read?"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from train_ledger.headway import is_heard, tell

__all__ = ["ShareRead"]

_WHAT = "reading logs"


class ShareRead:
    """Told in bytes as they lie on the disk, packed ones as they are.

    Of a pipe nobody knows how much is still to come: then no share is told.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._sizes = {path: _size(path) for path in paths} if is_heard() else {}
        known = [size for size in self._sizes.values() if size is not None]
        self._total = sum(known) if len(known) == len(self._sizes) else None
        self._before = 0

    def counted(self, path: Path, file: IO[bytes], stream: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces of a file that was opened; what was read before each is told."""
        if path not in self._sizes:
            yield from stream
            return
        packed = getattr(file, "fileobj", file)
        read_bytes = 0
        for piece in stream:
            yield piece
            read_bytes += len(piece)
            size = self._sizes[path]
            done = read_bytes if size is None else min(packed.tell(), size)
            tell(_WHAT, self._before + done, self._total, "bytes")

    def passed(self, path: Path) -> None:
        """The file is done with, however much of it was read."""
        self._before += self._sizes.get(path) or 0
        if self._sizes:
            tell(_WHAT, self._before, self._total, "bytes")


def _size(path: Path) -> int | None:
    if str(path) == "-":
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # it will be said when it is opened; ValueError: a zero byte in the name
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else None
