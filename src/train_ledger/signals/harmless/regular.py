"""How is a file opened that somebody may have replaced by something that blocks?

Opening a FIFO waits for its other end, for ever if need be, and so does reading it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

__all__ = ["open_regular"]

_FIRST_OF_OURS = 3


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file, never 0, 1 or 2, which C code writes to unasked.

    Raises OSError where the file cannot be opened or is not a regular one.
    """
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is no regular file", str(path))
        if fd >= _FIRST_OF_OURS:
            fd, ours = -1, fd
        else:
            ours = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_OF_OURS)
    finally:
        if fd >= 0:
            os.close(fd)
    return ours
