"""Is there another keeper for this run?

A run has exactly one keeper. The lock is the kernel's (flock, which NFSv4 carries between hosts), so that it
goes with the process that held it, however that ended; the file only says who it is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["KeeperHeld", "KeeperLock"]


class KeeperHeld(Exception):  # noqa: N818  (it is no error of ours: the lock is held)
    """Another keeper has the run; the text says who, for a person."""


class KeeperLock:
    """The lock of the keeper at `path`, usable as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock at once; raises KeeperHeld where another has it, OSError where no lock can be had."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 4096, 0)
            os.close(fd)
            raise KeeperHeld(_sentence(holder, self.path)) from None
        except OSError:
            os.close(fd)
            raise
        self._fd = fd
        holder = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": time.time()}).encode()
        with contextlib.suppress(
            OSError
        ):  # a full disk: the lock is held all the same, by whom is not written
            os.ftruncate(fd, 0)
            os.pwrite(fd, holder + b"\n", 0)

    def release(self) -> None:
        """Give the lock back; the file stays, since removing it would let two in."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with contextlib.suppress(OSError):  # closing it is what gives the lock back
                os.ftruncate(fd, 0)
            os.close(fd)

    @property
    def is_lost(self) -> bool:
        """Whether what is locked is no longer the file at `path`: somebody removed or replaced its folder.

        Then another keeper can hold a lock there, too. False where a file system does not say.
        """
        if self._fd is None:
            return False
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(self._fd))
        except OSError as error:
            return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.release()


def _sentence(holder: bytes, path: Path) -> str:
    try:
        who = json.loads(holder)
        since = time.strftime("%H:%M:%S UTC", time.gmtime(who["since"]))
        by = f"pid {int(who['pid'])} on host {who['host']} since {since}"
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        by = "by whom is not readable"
    told = f"watch is already running for this run: {by}; stop it first, or read along with the exporter"
    return f"{path}: {told}"
