"""What does the kernel of this host write, by journalctl, where /dev/kmsg may not be read?

journalctl is started as a process of its own and read from without waiting. It ends with us: when it is
closed, and by itself when nobody holds the other end of its pipe any more.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any, ClassVar

from train_ledger.sources.hardware.kernel_message import KernelMessage, matters

__all__ = ["Journal"]

_COMMAND = ("journalctl", "-k", "-f", "--no-pager", "--no-tail", "-o", "short-unix")
_MOST_BYTES = 4 << 20
_PIECE_BYTES = 64 << 10
_AGAIN_S = 60.0
_LINE = re.compile(r"(\d{9,11}\.\d{1,9}) \S{1,255} kernel(?:\[\d+\])?: (.*)\Z")


class Journal:
    """The journal's kernel lines from `since_t` (unix seconds) on, or from where an earlier reader stopped.

    `trouble` says why there are none; journalctl is started again a minute after it ended. Raises OSError
    where there is no journalctl.
    """

    name: ClassVar[str] = "journalctl"

    def __init__(
        self, *, since_t: float, place: Mapping[str, Any] | None = None, command: Sequence[str] = _COMMAND
    ) -> None:
        told = place.get("t") if place and place.get("by") == self.name else None
        self._last_t = float(told) if isinstance(told, int | float) else None
        self._told_t = self._last_t
        self._since_t = since_t
        self._command = tuple(command)
        self._left = b""
        self._said = b""
        self._again_s = 0.0
        self.trouble: str | None = None
        self._process: subprocess.Popen[bytes] | None = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        since_t = self._since_t if self._last_t is None else self._last_t
        process = subprocess.Popen(
            [*self._command, f"--since=@{since_t:.6f}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
        )
        for pipe in _pipes(process):
            os.set_blocking(pipe.fileno(), False)
        return process

    def poll(self) -> list[KernelMessage]:
        """What matters of the lines since the last look; raises OSError where journalctl is gone."""
        if self._process is None:
            if time.monotonic() < self._again_s:
                return []
            self._process = self._started()
        process = self._process
        ended = process.poll() is not None
        out, error = _pipes(process)
        lines = self._lines(_arrived(out.fileno()))
        self._said = (self._said + _arrived(error.fileno()))[-_PIECE_BYTES:]
        self._complain("journalctl says")
        if ended:
            self._end(process)
        return [message for line in lines if (message := self._message(line)) is not None]

    def place(self) -> Mapping[str, Any]:
        """Where this reader stands, for one that comes after it."""
        return {"by": self.name} if self._last_t is None else {"by": self.name, "t": self._last_t}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._end(self._process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        for pipe in _pipes(process):
            pipe.close()
        self.trouble = f"journalctl ended with {status}"
        self._complain(self.trouble)
        self._process, self._left, self._said = None, b"", b""
        self._told_t = self._last_t
        self._again_s = time.monotonic() + _AGAIN_S

    def _complain(self, front: str) -> None:
        """Where its user may not read the system's journal it goes on, and says so on standard error."""
        said = self._said.decode("utf-8", "replace").split("\n")
        first = next((it.strip() for it in said if it.strip()), "")
        if first:
            self.trouble = f"{front}: {first[:200]}"

    def _lines(self, data: bytes) -> list[str]:
        *whole, self._left = (self._left + data).split(b"\n")
        if len(self._left) > _PIECE_BYTES:
            self._left = b""
        return [line.decode("utf-8", "replace") for line in whole]

    def _message(self, line: str) -> KernelMessage | None:
        match = _LINE.match(line)
        if match is None:
            return None
        t = float(match[1])
        if self._told_t is not None and t <= self._told_t:
            return None  # it was told by an earlier reader, or before journalctl ended
        self._last_t = t if self._last_t is None else max(t, self._last_t)
        return KernelMessage(t, match[2]) if matters(match[2]) else None


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdout is None or process.stderr is None:
        raise AssertionError("journalctl was started without pipes")
    return process.stdout, process.stderr


def _arrived(fd: int) -> bytes:
    content = b""
    with contextlib.suppress(BlockingIOError):
        while len(content) < _MOST_BYTES and (piece := os.read(fd, _PIECE_BYTES)):
            content += piece
    return content
