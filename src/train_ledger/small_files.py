"""How is a small file read without waiting for anybody, and replaced as a whole?"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["parsed_json", "read_small", "write_atomically"]

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_SMALL_BYTES = 256 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_small(path: Path, *, limit_bytes: int = _SMALL_BYTES) -> bytes:
    """The whole content of a regular file, without ever waiting for a writer, a device or a terminal.

    Raises FileNotFoundError where nothing has that name, and OSError whose `strerror` tells people why it is
    not read: what else it is (a folder, a FIFO, a link to nothing, …), or that it is too large.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            raise _refused(path, "is a link to a file that is not there") from None
        raise
    _want_file(path, status)  # before opening, which would wake the writer of a FIFO
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        _want_file(path, status)  # it may have been swapped between the two looks
        content = file.read(min(limit_bytes, status.st_size) + 1)  # no room for more than there is
        content += file.read(limit_bytes + 1 - len(content)) if len(content) > status.st_size else b""
    if len(content) > limit_bytes:
        raise _refused(path, f"is larger than {limit_bytes >> 20} MiB")
    return content


def _want_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
        raise _refused(path, f"is {kind}, but a file is wanted")


def _refused(path: Path, why: str) -> OSError:
    return OSError(errno.EINVAL, why, str(path))


def parsed_json(data: bytes | str) -> Any:
    """What JSON from a file stands for; raises ValueError for what is none or nests too deeply.

    Half of a character that JSON writes as two becomes "?": no file and no page can hold it.
    """
    try:
        found = json.loads(data)
        if _HALF.search(data if isinstance(data, bytes) else data.encode("utf-8", "replace")):
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        return found
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644, to_disk: bool = False) -> None:
    """Replace `path` as a whole: a reader sees the old content or the new, never a part.

    `mode` is who may read it; with `to_disk` the content is on the disk when this returns. Raises OSError
    where the folder cannot be written, and where what is there is no file: /dev/null is not to be replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        _want_file(path, os.stat(path))
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if to_disk:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
