"""How do the bytes of a log come in, wherever it is kept?

A plain file, one that gzip packed (as logrotate does), or the standard input. A pipe or a device is never
opened: its writer would wait for us, or we for it.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from train_ledger.sources.files.ready import is_ready

__all__ = ["NotRead", "opened", "pieces", "why_no_text"]

_PIECE_BYTES = 256 << 10
_QUIET_S = 0.2
_HANDED = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,6})\Z")
_MAGIC = b"\x1f\x8b"
_HEAD_BYTES = 4096
_PACKED = (
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd", "zstd -d"),
    (re.compile(rb"\xfd7zXZ\0"), "xz", "xz -d"),
    (re.compile(rb"BZh[1-9]1AY&SY"), "bzip2", "bzip2 -d"),
    (re.compile(rb"PK\x03\x04"), "zip", "unzip"),
)
"""By the first bytes, what packed a file, and what unpacks it."""
_WIDE = re.compile(rb"(?:[\t\n\r -~]\0){16}")
"""Characters of two bytes each, as UTF-16 writes them."""
_HOLE = re.compile(rb"\A\0+|\0+\Z|\0{16,}")


class NotRead(Exception):  # noqa: N818
    """A file, or the rest of it, cannot be read; the text says why, in words for a person."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], float | None]]:
    """The bytes of a log, unpacked, and when it was written last; "-" is the standard input.

    What was handed to us open is read like that: /dev/fd/63, as `<(…)` of a shell names it. Raises NotRead.
    """
    with ExitStack() as held:
        if str(path) == "-":
            file, written_t = _standard_input(), None
        else:
            fd, written_t = _descriptor(path)
            file = held.enter_context(open(fd, "rb"))
        if _magic(file) == _MAGIC:
            file = cast("IO[bytes]", held.enter_context(gzip.open(file)))
        yield file, written_t


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise NotRead("is closed")
    return sys.stdin.buffer


def _descriptor(path: Path) -> tuple[int, float | None]:
    handed = _HANDED.match(str(path))
    try:
        if handed:
            return os.dup(int(handed[1])), None
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise NotRead("is no regular file")
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), status.st_mtime
    except OSError as error:
        raise _refused(error) from error


def _magic(file: IO[bytes]) -> bytes:
    try:
        return file.peek(len(_MAGIC))[: len(_MAGIC)] if isinstance(file, BufferedReader) else b""
    except OSError as error:
        raise _refused(error) from error


def _refused(error: OSError) -> NotRead:
    return NotRead((error.strerror or str(error)).lower())


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """What is in it, piece by piece, as it comes; raises NotRead where it is damaged or is refused.

    Of a pipe that is still written to, an empty piece says that nothing has come for a while.
    """
    read = getattr(file, "read1", file.read)
    is_pipe = False  # the first piece may have come already, and nothing was told that could be settled
    while True:
        if is_pipe and not is_ready(file, _QUIET_S):
            yield b""
            is_ready(file, None)
        try:
            piece = read(_PIECE_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise NotRead(f"is damaged ({error})") from error
        except OSError as error:
            raise _refused(error) from error
        if not piece:
            return
        yield piece
        is_pipe = _is_pipe(file)


def why_no_text(head: bytes) -> str | None:
    """Why these are the first bytes of no log; many NULs in a row are what a truncation or a crash leaves."""
    head = head[:_HEAD_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "is UTF-16; make it UTF-8 first (iconv -f UTF-16 -t UTF-8)"
    for magic, name, command in _PACKED:
        if magic.match(head):
            return f"is packed with {name}; unpack it first ({command})"
    if b"\0" not in _HOLE.sub(b"", head):
        return None
    if _WIDE.match(head):
        return "is UTF-16; make it UTF-8 first (iconv -f UTF-16LE -t UTF-8)"
    return "is no text"


def _is_pipe(file: object) -> bool:
    """Whether nothing more has come than the pipe shows: of what is packed there may be more."""
    try:
        return isinstance(file, BufferedReader) and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    except OSError:  # closed meanwhile
        return False
