"""How are the dumps in a tar read without trusting it?

Regular files alone are unpacked: no links, no devices, no path that leads out. Members, bytes and how far it
may swell are bounded. What is refused is listed by the name of its member, and the rest is read.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Protocol

from train_ledger.answer import Unreadable
from train_ledger.config import Limits
from train_ledger.hang.dumps.dump_files import rank_of, shown
from train_ledger.hang.dumps.pickles import RefusedError, open_regular

__all__ = ["is_archive", "unpack"]

_MOST_MEMBERS = 200_000
_MOST_DEPTH = 16
_TIMES_ONE_DUMP = 64
"""How many times the bytes allowed for one dump all members may have together."""
_SWELLS = 500
_ALWAYS_ALLOWED_BYTES = 64 << 20
_HEADER_BYTES = 1 << 20
_CHUNK = 1 << 20
_XZ_MEMORY_BYTES = 256 << 20
_DAMAGED = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, UnicodeError)


_MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zst"}
_SUFFIXES = (".tar", ".gz", ".tgz", ".xz", ".txz", ".bz2", ".tbz2", ".zst", ".tzst")


def is_archive(path: Path) -> bool:
    """By its name or its first bytes; False for what is no regular file or cannot be read.

    What is named as a dump is not opened here: there may be thousands of them.
    """
    if rank_of(path.name) is not None and not path.name.lower().endswith(_SUFFIXES):
        return False
    try:
        with open_regular(path) as file:
            beginning = file.read(512)
    except (OSError, RefusedError, ValueError):
        return False
    packed = any(beginning.startswith(magic) for magic in _MAGIC)
    return packed or beginning[257:262] == b"ustar" or path.name.lower().endswith(".tar")


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Xz:
    """LZMAFile with a bound on memory, which the file itself would choose."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream = self._new()

    def _new(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)

    def read(self, size: int = -1, /) -> bytes:
        while True:
            data = self._file.read(_CHUNK) if self._stream.needs_input else b""
            if self._stream.needs_input and not data:
                raise EOFError("the archive is cut short")
            if found := self._stream.decompress(data, size):
                return found
            if self._stream.eof:
                rest = self._stream.unused_data.lstrip(b"\0") or self._file.read(_CHUNK)
                if not rest:
                    return b""
                self._stream = self._new()
                if found := self._stream.decompress(rest, size):
                    return found


class _Bounded:
    """Reads up to `allowed` bytes; what asks for more is refused before it fills the memory or the disk."""

    def __init__(self, file: _Readable, most_bytes: int) -> None:
        self._file = file
        self._most_bytes = most_bytes
        self.total = 0
        self.allowed = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, _CHUNK) if size >= 0 else _CHUNK)
        self.total += len(data)
        if self.total > self._most_bytes:
            raise RefusedError(f"refused from here on: it unpacks to more than {self._most_bytes} bytes")
        if self.total > self.allowed:
            raise RefusedError("refused from here on: a header of more than a megabyte")
        return data


def unpack(path: Path, folder: Path, limits: Limits) -> list[Unreadable]:
    """Put the regular files of an archive into `folder`; what was refused of it, by its name in it.

    Never raises for what is in the archive or happens to it.
    """
    refused: list[Unreadable] = []
    archive = shown(path)
    count = 0
    try:
        with open_regular(path) as file:
            bounded = _Bounded(_decompressed(file), _most_bytes(file, folder, limits))
            for member, content in _members(bounded):
                count += 1
                if count > _MOST_MEMBERS:
                    raise RefusedError(f"refused from here on: more than {_MOST_MEMBERS} members")
                if why := _take(member, content, folder, limits):
                    refused.append(Unreadable(f"{archive}: {member.name[:200]}", why))
        if not count:
            refused.append(Unreadable(archive, "an archive without anything in it"))
    except RefusedError as error:
        refused.append(Unreadable(archive, str(error)))
    except OSError as error:
        refused.append(Unreadable(archive, error.strerror or str(error)))
    except _DAMAGED as error:
        refused.append(Unreadable(archive, f"damaged archive, read up to member {count}: {str(error)[:120]}"))
    return refused


def _decompressed(file: BinaryIO) -> _Readable:
    beginning = file.read(8)
    file.seek(0)
    kind = next((kind for magic, kind in _MAGIC.items() if beginning.startswith(magic)), "tar")
    if kind == "gz":
        return gzip.GzipFile(fileobj=file)
    if kind == "xz":
        return _Xz(file)
    if kind == "bz2":
        return bz2.BZ2File(file)
    if kind == "zst":
        return _zstd(file)
    return file


def _zstd(file: BinaryIO) -> _Readable:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]  # of Python 3.14
    except ImportError:
        raise RefusedError(
            "this Python cannot read zstd: unpack it (tar --zstd -xf) and name the folder"
        ) from None
    found: _Readable = zstd.ZstdFile(file)
    return found


def _most_bytes(file: BinaryIO, folder: Path, limits: Limits) -> int:
    """What an archive may unpack to: no more than it is plausible for its size, nor than the disk takes."""
    size = os.fstat(file.fileno()).st_size
    swollen = max(_SWELLS * size, _ALWAYS_ALLOWED_BYTES)
    return min(_TIMES_ONE_DUMP * limits.dump_bytes, swollen, shutil.disk_usage(folder).free * 9 // 10)


def _members(bounded: _Bounded) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """Each member with its content, which is passed over where it was not taken."""
    bounded.allowed = _HEADER_BYTES
    with tarfile.open(fileobj=_as_file(bounded), mode="r|") as tar:
        while (member := tar.next()) is not None:
            vars(tar)["members"] = []  # a stream goes one way: none of them is asked for again
            bounded.allowed = bounded.total + member.size + _HEADER_BYTES
            content = tar.extractfile(member) if member.isreg() and not member.issparse() else None
            yield member, content
            if content:
                while content.read(_CHUNK):
                    pass
            bounded.allowed = max(bounded.allowed, bounded.total + _HEADER_BYTES)


def _as_file(bounded: _Bounded) -> IO[bytes]:
    return bounded  # type: ignore[return-value]  # tarfile asks a stream for nothing but read()


def _take(member: tarfile.TarInfo, content: IO[bytes] | None, folder: Path, limits: Limits) -> str | None:
    """Write one member; why not, where it is refused."""
    if member.isdir():
        return None
    if content is None:
        return f"refused: {_kind(member)}"
    if why := _leads_out(member.name):
        return why
    if member.size > limits.dump_bytes:
        return f"refused: {member.size} bytes, more than the {limits.dump_bytes} allowed"
    return _write(content, folder / PurePosixPath(member.name), member.mtime)


def _kind(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return "a link"
    return "a sparse file" if member.issparse() else "neither a file nor a folder"


def _leads_out(name: str) -> str | None:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        return "refused: its path leads out of the archive"
    if len(parts) > _MOST_DEPTH:
        return f"refused: more than {_MOST_DEPTH} folders deep"
    return None


def _write(content: IO[bytes], file: Path, mtime: float) -> str | None:
    try:
        twice = "is in the archive more than once; the last one is read" if file.is_file() else None
        file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            file.unlink()
        with file.open("xb") as out:
            shutil.copyfileobj(content, out, _CHUNK)
        # Dumps of earlier attempts are told by their times.
        os.utime(file, (mtime, mtime) if 0 <= mtime < 1e11 else None)
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeError:  # of this member alone: what follows is read
        return "its name cannot be written in this locale: set LC_ALL=C.UTF-8"
    return twice
