"""Where does a recorder of a host's hardware write, and how is it kept from growing?

RUN/hardware/HOST.jsonl and HOST.kern.log, appended to by one process a host, each rotated by size. A file is
opened for each writing: what was removed or rotated by others is made anew, and NFS shows it to other hosts.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import socket
import stat
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train_ledger.run_dir import RunDir, parsed_json, read_small, write_atomically

__all__ = ["HardwareStore"]

_FILE_BYTES = 16 << 20
_KEPT = 3
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP})


class HardwareStore:
    """The files of one host in a run directory; `claim` them before anything is written.

    A file that reaches `file_bytes` becomes HOST.jsonl.1, and that .2, up to three: what is older goes.
    """

    def __init__(self, run_dir: RunDir, host: str, *, file_bytes: int = _FILE_BYTES) -> None:
        name = host.replace("/", "_").lstrip(".") or "host"
        self.readings = run_dir.hardware / f"{name}.jsonl"
        self.kernel = run_dir.hardware / f"{name}.kern.log"
        self._lock = run_dir.hardware / f".{name}.lock"
        self._place = run_dir.hardware / f".{name}.place.json"
        self._file_bytes = file_bytes
        self._turns = {file: threading.Lock() for file in (self.readings, self.kernel)}
        self._fd: int | None = None
        self._socket: socket.socket | None = None

    def claim(self) -> bool:
        """Whether this process alone may write them; False where another does.

        The lock is the kernel's, so that it goes with the process. Raises OSError where none can be had.
        """
        if self._fd is not None or self._socket is not None:
            return True
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        except OSError as error:
            os.close(fd)
            if error.errno in _NO_LOCKS:
                return self._claim_on_this_host()
            raise
        self._fd = fd
        return True

    def _claim_on_this_host(self) -> bool:
        """By a name that only one socket of a host can have, where the file system knows no locks."""
        name = hashlib.sha256(str(self._lock.resolve()).encode(errors="replace")).hexdigest()[:32]
        claimed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claimed.bind(f"\0train-ledger-{name}")
        except OSError:
            claimed.close()
            return False
        self._socket = claimed
        return True

    def release(self) -> None:
        """Let another write; the lock's file stays, since removing it would let two in."""
        if self._fd is not None:
            os.close(self._fd)
        if self._socket is not None:
            self._socket.close()
        self._fd = self._socket = None

    def append(self, file: Path, lines: Sequence[str]) -> None:
        """Add whole lines, and rotate before where there is no room; raises OSError. From any thread."""
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        with self._turns[file]:
            self._append(file, data)

    def _append(self, file: Path, data: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            size = os.stat(file).st_size
            if size and size + len(data) > self._file_bytes:
                _rotate(file)
        fd = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):  # a pipe would hold us up for good
                raise OSError(errno.EINVAL, "is no file", str(file))
            _write_whole(fd, data)
        finally:
            os.close(fd)

    def read_place(self) -> Mapping[str, Any] | None:
        """Where the last reader of the kernel's log stopped, as `KernelLines.place` said; None: not known."""
        try:
            place = parsed_json(read_small(self._place, limit_bytes=1 << 20))
        except (OSError, ValueError):
            return None
        return place if isinstance(place, dict) else None

    def write_place(self, place: Mapping[str, Any] | None) -> None:
        """Keep it for the next one; raises OSError."""
        if place is not None:
            write_atomically(self._place, json.dumps(place).encode())


def _write_whole(fd: int, data: bytes) -> None:
    """Behind a line that was torn, as by a full disk, begin on a new one."""
    size = os.fstat(fd).st_size
    if data and size and os.pread(fd, 1, size - 1) != b"\n":
        data = b"\n" + data
    while data:
        data = data[os.write(fd, data) :]


def _rotate(file: Path) -> None:
    for age in range(_KEPT, 0, -1):
        younger = file if age == 1 else file.with_name(f"{file.name}.{age - 1}")
        with contextlib.suppress(FileNotFoundError):
            os.replace(younger, file.with_name(f"{file.name}.{age}"))
