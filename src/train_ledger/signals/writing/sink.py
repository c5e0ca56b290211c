"""How do whole lines get into a file that may be full, unwritable, moved away or no file at all?

Used by the writer thread alone; it may wait here for as long as a dead file server likes. Nothing is raised
for what the file system does: `write` says what could not be written yet, `trouble` says why.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from train_ledger.signals.harmless.regular import open_regular
from train_ledger.signals.writing.rotation import Rotation

__all__ = ["Sink"]

_REOPEN_S = 1.0
_IDENTITY_CHECK_S = 5.0
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT


class Sink:
    """An append-only file that never holds a torn line in its middle.

    What a full disk cut off is kept and continued by the next write. Where the file has been replaced in the
    meantime the rest of that line is given up (`lines_lost`); a file whose end another process left torn gets
    a newline first.
    """

    def __init__(self, path: Path, rotation: Rotation | None = None) -> None:
        self.path = path
        self._rotation = rotation or Rotation()
        self.trouble: str | None = None
        self.lines_lost = 0
        self._fd: int | None = None
        self._cut = False
        self._give_up_rest = False
        self._newline_first = False
        self._next_open = 0.0
        self._next_check = 0.0

    def write(self, data: bytes) -> bytes:
        """Write what can be written of `data` (whole lines); returns the rest, to be handed in again."""
        if not self._ready() or self._fd is None:
            return data
        data = self._mended(data)
        try:
            written = os.write(self._fd, data) if data else 0
        except OSError as error:
            self.trouble = f"{self.path}: {error.strerror}"
            return data
        self.trouble = (
            None if written == len(data) else f"{self.path}: only a part could be written; is the disk full?"
        )
        if written:
            self._cut = data[written - 1 : written] != b"\n"
        return data[written:]

    def rotate(self) -> None:
        """Give a file that has become large its next name; the next line begins a new one.

        To be called where nothing is to be written for a while, so that whoever looks at the names meets one
        change at a time: first the name is gone, later it is a new file's.
        """
        if self._fd is None or self._cut or not self._rotation.is_due(self._fd):
            return
        if self._same_file() and self._rotation.rename(self.path):
            self.close()
            self._next_open = 0.0

    def close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with contextlib.suppress(OSError):  # a file server says here that it lost what it had taken
                os.close(fd)

    def _ready(self) -> bool:
        now = time.monotonic()
        if self._fd is not None and now >= self._next_check:
            self._next_check = now + _IDENTITY_CHECK_S
            if not self._same_file():
                self.close()
        if self._fd is None and now >= self._next_open:
            self._next_open = now + _REOPEN_S
            self._open()
        return self._fd is not None

    def _same_file(self) -> bool:
        assert self._fd is not None  # noqa: S101 – asked only while a file is open
        try:
            there, here = os.stat(self.path), os.fstat(self._fd)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd = open_regular(self.path, _FLAGS)
        except OSError as error:
            self.trouble = f"{self.path}: {error.strerror}"
            return
        self._fd = fd
        self._newline_first = _ends_torn(fd)
        self._give_up_rest, self._cut = self._cut, False

    def _mended(self, data: bytes) -> bytes:
        if self._give_up_rest:
            self._give_up_rest = False
            self.lines_lost += 1
            data = data.partition(b"\n")[2]
        if self._newline_first and data:
            self._newline_first = False
            data = b"\n" + data
        return data


def _ends_torn(fd: int) -> bool:
    try:
        size = os.fstat(fd).st_size
        return size > 0 and os.pread(fd, 1, size - 1) != b"\n"
    except OSError:
        return False
