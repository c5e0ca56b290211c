"""Where is somebody told on stderr, and is it still stderr?

A job may be started with descriptor 2 closed, and the next file it opens – a checkpoint – then has that
number. So the descriptor is written to only where Python began with a stderr there, and only while it is the
file that it was when this was made.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from train_ledger.signals.harmless.bounded import within

__all__ = ["Stderr"]

_DESCRIPTOR = 2
_SAY_S = 0.2


class Stderr:
    """The stderr that is there now."""

    def __init__(self) -> None:
        self._file = _file_at(_DESCRIPTOR) if _python_began_with_one() else None

    def say(self, line: str) -> None:
        """Write one line; a pipe that nobody reads is waited for only a little."""
        # The descriptor, not sys.stderr: its lock, held by a thread that blocks, aborts Python's exit.
        if self._file is not None and self._file == _file_at(_DESCRIPTOR):
            text = f"train-ledger: {line}\n".encode(errors="replace")
            within(_SAY_S, partial(os.write, _DESCRIPTOR, text), None)


def _python_began_with_one() -> bool:
    try:
        return sys.__stderr__ is not None and sys.__stderr__.fileno() == _DESCRIPTOR
    except (OSError, ValueError):  # closed since
        return False


def _file_at(descriptor: int) -> tuple[int, int] | None:
    try:
        there = os.fstat(descriptor)
    except OSError:
        return None
    return there.st_dev, there.st_ino
