"""Which keys are pressed while a screen is shown?

A terminal hands over whole lines and writes what is typed into the screen; for as long as keys are listened
to it does neither, and afterwards it is as it was.
"""

from __future__ import annotations

import contextlib
import os
import select
import termios
import time
import tty
from typing import Any, TextIO

from train_ledger.cli.progress import is_in_front

__all__ = ["Keys"]

_QUITS = frozenset(b"qQ")
_AT_ONCE_BYTES = 64


class Keys:
    """`q` asks to quit. Ctrl-C stays an interrupt; where no terminal types, nothing is heard."""

    def __init__(self, stream: TextIO | None) -> None:
        self.wanted_to_quit = False
        self._fd = stream.fileno() if stream is not None and stream.isatty() else None
        self._before: list[Any] | None = None

    def __enter__(self) -> Keys:
        if self._fd is not None and is_in_front(self._fd):
            self._before = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd, termios.TCSADRAIN)
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None and self._before is not None:
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def wait(self, timeout_s: float) -> None:
        """Returns at the next key, or when the time is over."""
        if self._fd is None or self._before is None:
            time.sleep(timeout_s)
            return
        if not select.select([self._fd], [], [], timeout_s)[0]:
            return
        try:
            typed = os.read(self._fd, _AT_ONCE_BYTES)
        except OSError:
            typed = b""
        self.wanted_to_quit = not typed or not _QUITS.isdisjoint(typed)  # nothing: nobody is there any more
