"""How does a foreign library run beside the training, in a process that nobody ever waits for?"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import IO, Any

from train_ledger.signals.harmless.values import detail

__all__ = ["ABSENT", "HelperProcess", "line_of"]

ABSENT = 3
"""The status with which a helper ends whose library is not installed."""

_LAST_WORDS_BYTES = 4096
_PRIVATE = frozenset({"WANDB_SERVICE", "TRAIN_LEDGER_SPEAKER"})
"""Variables by which the helper would join what this process does."""


class HelperProcess:
    """The process that runs `serve` of a module in `integrations`, and the pipes to it; nothing waits for it.

    It acknowledges each line with a byte once the library has it, and ends by itself after the line "end", or
    when this process is gone (see `integrations.helper`). `ended` is its exit status once `listen` saw it.
    """

    def __init__(self, program: str, settings: Mapping[str, Any]) -> None:
        code = f"from train_ledger.signals.integrations.{program} import serve; serve()"
        path = os.pathsep.join(entry for entry in sys.path if entry)
        environ = {key: value for key, value in os.environ.items() if key not in _PRIVATE}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**environ, "PYTHONPATH": path},
            start_new_session=True,  # what Ctrl-C ends is the training; this one sends the rest
        )
        self._pid = os.getpid()
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
        self._pending = line_of(settings)
        self._sent = -1  # the settings are no step
        self._taken = 0
        self._words = b""
        self.finishing = False
        self.ended: int | None = None

    def _pipes(self) -> list[IO[bytes]]:
        process = self._process
        return [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None]

    @property
    def lost(self) -> int:
        """Steps that were handed to it and that its library does not have."""
        return max(0, self._sent + self._pending.count(b"\n") - self._taken)

    def takes(self) -> bool:
        """Whether all that was sent so far went into the pipe."""
        self._push()
        return self.ended is None and not self._pending

    def send(self, lines: list[bytes]) -> None:
        self._pending += b"".join(lines)
        self._push()

    def finish(self) -> None:
        """Have it end once it has taken everything."""
        if not self.finishing and self.takes():
            self.finishing = True
            self._sent -= 1
            self.send([b'"end"\n'])

    def _push(self) -> None:
        while self._pending and self.ended is None and self._process.stdin is not None:
            try:
                written = os.write(self._process.stdin.fileno(), self._pending)
            except BlockingIOError:
                return
            except OSError:  # it is gone; `listen` says so
                return
            self._sent += self._pending.count(b"\n", 0, written)
            self._pending = self._pending[written:]

    def listen(self) -> None:
        """What has it taken and said, and is it still there?"""
        ended = self._process.poll()
        self._taken += len(_available(self._process.stdout))
        self._words = (self._words + _available(self._process.stderr))[-_LAST_WORDS_BYTES:]
        self.ended = ended

    def last_words(self) -> str:
        """Why it ended, in its own words."""
        status = self.ended or 0
        if status < 0:
            return f"its process was ended by signal {-status}"
        said = self._words.decode(errors="replace").strip().splitlines()
        return said[-1].strip() if said and status else "its process ended"

    def leave(self, *, kill: bool) -> None:
        """Nobody will wait for it any more: it ends by itself, but to `kill` ends one that takes nothing."""
        if kill and self.ended is None and self.lost:
            with contextlib.suppress(OSError):
                self._process.kill()
        self.let_go()

    def let_go(self) -> None:
        """Close this process's ends of the pipes."""
        for pipe in self._pipes():
            with contextlib.suppress(OSError):
                pipe.close()
        if self._pid == os.getpid():
            self._process.poll()


def line_of(content: object) -> bytes:
    """`content` as a line for the helper; of what JSON has no word for its type's name."""
    try:
        return json.dumps(content).encode() + b"\n"
    except (TypeError, ValueError):
        return json.dumps(detail(content)).encode() + b"\n"


def _available(pipe: IO[bytes] | None) -> bytes:
    try:
        return os.read(pipe.fileno(), 1 << 16) if pipe is not None else b""
    except (OSError, ValueError):
        return b""
