"""How is a rank dumped that has no monitor of ours?

NCCL's process group reads a named pipe where TORCH_NCCL_DEBUG_INFO_PIPE_FILE is set: <prefix><rank>.pipe
(torch 2.13: ProcessGroupNCCL.cpp). Any byte in it asks for a dump, which torch then writes, not at once and
not as a whole, where its own variables say.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from train_ledger.hang.dumps.pickles import RefusedError, open_regular
from train_ledger.signals import flight

__all__ = ["PipeError", "Watched", "ask_by_pipe", "dump_places", "pipe_prefix"]

_PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_DUMPS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")


class PipeError(Exception):
    """A rank cannot be asked by its pipe; the text says why."""


def pipe_prefix(variables: Mapping[str, str]) -> str | None:
    """What stands before the rank in the pipe's path, by the rank's environment."""
    return variables.get(_PIPE) or None


def ask_by_pipe(prefix: str, rank: int) -> None:
    """Ask a rank for a dump, without ever waiting for it.

    Raises PipeError where there is no pipe of this user with a reader at its end.
    """
    path = f"{prefix}{rank}.pipe"
    try:
        status = os.lstat(path)
        if not stat.S_ISFIFO(status.st_mode):
            raise PipeError(f"{path} is no pipe")
        if status.st_uid != os.geteuid():
            raise PipeError(f"{path} is another user's")
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise PipeError(_why(path, error)) from error
    try:
        if not os.path.samestat(os.fstat(fd), status):
            raise PipeError(f"{path} was replaced while it was looked at")
        os.write(fd, b"1")
    except BlockingIOError:
        return  # it is full of requests already
    except OSError as error:
        raise PipeError(_why(path, error)) from error
    finally:
        os.close(fd)


def _why(path: str, error: OSError) -> str:
    if error.errno == errno.ENXIO:
        return f"nobody reads {path}"
    if error.errno == errno.ENOENT:
        return f"there is no pipe {path}"
    return f"{path}: {error.strerror or error}"


def dump_places(rank: int, variables: Mapping[str, str], pid: int | None, prefix: str | None) -> list[Path]:
    """Where a rank's own dumps may be written, the likeliest first; relative ones as its process has them."""
    named = [prefix] if prefix else []
    named += [variables[name] for name in _DUMPS if variables.get(name)]
    default = flight.dump_prefix({name: it for name, it in variables.items() if name not in _DUMPS})
    here = f"/proc/{pid}/cwd" if pid else "."
    return [Path(here, f"{it}{rank}") for it in dict.fromkeys([*named, default])]


class Watched:
    """A file that somebody else is about to write: has it changed, and does it look whole?"""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._before = self._look()
        self._last = self._before

    def _look(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except (OSError, ValueError):
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino) if stat.S_ISREG(status.st_mode) else None

    @property
    def has_changed(self) -> bool:
        return self._look() not in (self._before, None)

    def is_whole(self) -> bool:
        """Changed since the beginning, of the same size as at the last look, and with a proper end."""
        now, last = self._look(), self._last
        self._last = now
        return now is not None and now != self._before and now == last and _ends_well(self.path)


def _ends_well(path: Path) -> bool:
    """By the last byte: a pickle's STOP, or the end of an object of JSON."""
    try:
        with open_regular(path) as file:
            first = file.read(1)
            file.seek(-min(64, os.fstat(file.fileno()).st_size), os.SEEK_END)
            end = file.read().rstrip(b" \t\r\n\0")
    except (OSError, RefusedError):
        return False
    return end.endswith(b"." if first == b"\x80" else b"}")
