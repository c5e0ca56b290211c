"""How is a hook run so that it can neither hold up the keeper nor be fooled by a log?

The command is the user's own list of words; what is known of the incident comes on its standard input. It
writes into a file of its own, so that what it leaves running can go on writing when it has ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from train_ledger.render import as_json, harmless

__all__ = ["HookRun", "Outcome"]

_LAST_BYTES = 4096
_LOG_BYTES = 16 << 20
"""One that writes without end would fill the disk on which the run saves: what it wrote is begun anew."""

_LOOKS_S = 0.2
_LONGEST_LINE = 300


class Outcome(NamedTuple):
    """How a hook ended (None: it could not be started, or took too long) and the last line it wrote."""

    exit_code: int | None
    said: str


class HookRun:
    """One run of a hook, beside whoever started it; `outcome` is None until it has ended."""

    def __init__(self, command: Sequence[str], told: Mapping[str, Any], log: Path, wait_s: float) -> None:
        self._command, self._wait_s, self._log = tuple(command), wait_s, log
        self._told = as_json(told, indent=None).encode()
        self.outcome: Outcome | None = None
        self._thread = threading.Thread(target=self._run, name="hook", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, but not longer than this."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self.outcome = self._ended()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.outcome = Outcome(None, f"it could not be started: {harmless(str(why))}")

    def _ended(self) -> Outcome:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with open(self._log, "wb", opener=_private) as log:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        ended = threading.Event()
        threading.Thread(target=_keep_small, args=(self._log, ended), name="hook's log", daemon=True).start()
        try:
            process.communicate(self._told, timeout=self._wait_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Outcome(None, f"it took longer than {self._wait_s:g} s and was killed")
        finally:
            ended.set()
        return Outcome(process.returncode, _last_line(self._log))


def _keep_small(log: Path, ended: threading.Event) -> None:
    """Begin the log anew whenever it is too long; it is appended to, so that its writer goes on there."""
    while not ended.wait(_LOOKS_S):
        with contextlib.suppress(OSError):  # gone: then there is nothing to keep small
            if log.stat().st_size > _LOG_BYTES:
                os.truncate(log, 0)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND, 0o600)


def _last_line(path: Path) -> str:
    with open(path, "rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_BYTES))
        lines = log.read().decode(errors="replace").splitlines()
    return harmless(next((line for line in reversed(lines) if line.strip()), ""), longest=_LONGEST_LINE)
