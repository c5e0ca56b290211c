"""How do the bytes of a log come in, wherever it is kept?

A plain file, one that gzip packed (as logrotate does), or the standard input. A pipe or a device is never
opened: its writer would wait for us, or we for it.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

__all__ = ["NotRead", "opened", "pieces", "why_no_text"]

_PIECE_BYTES = 256 << 10
_QUIET_S = 0.2
_MAGIC = b"\x1f\x8b"
_HEAD_BYTES = 4096
_HOLE = re.compile(rb"\A\0+|\0+\Z|\0{16,}")


class NotRead(Exception):  # noqa: N818
    """A file, or the rest of it, cannot be read; the text says why, in words for a person."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], float | None]]:
    """The bytes of a log, unpacked, and when it was written last; "-" is the standard input.

    Raises NotRead.
    """
    if str(path) == "-":
        yield sys.stdin.buffer, None
        return
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise NotRead("is no regular file")
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise NotRead((error.strerror or str(error)).lower()) from error
    with open(fd, "rb") as file:
        if file.peek(2)[:2] == _MAGIC:
            with gzip.open(file) as unpacked:
                yield cast("IO[bytes]", unpacked), status.st_mtime
        else:
            yield file, status.st_mtime


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """What is in it, piece by piece, as it comes; raises NotRead where it is damaged or is refused.

    Of a pipe that is still written to, an empty piece says that nothing has come for a while.
    """
    read = getattr(file, "read1", file.read)
    is_pipe = _is_pipe(file)
    while True:
        if is_pipe and not select.select([file], [], [], _QUIET_S)[0]:
            yield b""
            select.select([file], [], [])
        try:
            piece = read(_PIECE_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise NotRead(f"is damaged ({error})") from error
        except OSError as error:
            raise NotRead((error.strerror or str(error)).lower()) from error
        if not piece:
            return
        yield piece


def why_no_text(head: bytes) -> str | None:
    """Why these are the first bytes of no log; many NULs in a row are what a truncation or a crash leaves."""
    head = head[:_HEAD_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "is UTF-16; make it UTF-8 first (iconv -f UTF-16 -t UTF-8)"
    return "is no text" if b"\0" in _HOLE.sub(b"", head) else None


def _is_pipe(file: IO[bytes]) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    except OSError:  # it has no descriptor: it is held in memory
        return False
