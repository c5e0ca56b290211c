"""What does a process still say when it ends, by itself, by an exception or by a fatal signal?

The hooks that were there before are called after ours; nothing here keeps the process from ending.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

__all__ = ["ExceptionHooks", "FatalStacks"]

Raised = Callable[[BaseException, str | None], None]


class ExceptionHooks:
    """Calls `raised(error, thread)` for what nobody caught – `thread` is None on the main thread – and `ended` at exit."""

    def __init__(self, raised: Raised, ended: Callable[[], None]) -> None:
        self._raised = raised
        self._ended = ended
        self._excepthook = sys.excepthook
        self._thread_hook = threading.excepthook
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        atexit.register(ended)

    def close(self) -> None:
        """Take the hooks back, but leave those that somebody has put over them."""
        # A bound method is a new object at every look: == compares what it is bound to.
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._excepthook
        if threading.excepthook == self._on_thread_exception:
            threading.excepthook = self._thread_hook
        atexit.unregister(self._ended)

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._raised(error, None)
        self._excepthook(kind, error, trace)

    def _on_thread_exception(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self._raised(args.exc_value, args.thread.name if args.thread else "?")
        self._thread_hook(args)


class FatalStacks:
    """faulthandler into the rank's stacks file, for SIGABRT, SIGSEGV and their like; left alone where it is in use.

    The file is there, empty, while nothing has happened. Whoever replaces it – stacks on request, py-spy from
    outside – takes the name away from the open file; `renew` follows the name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        if not faulthandler.is_enabled():
            self.renew()

    def renew(self) -> None:
        """Make sure that a fatal signal is written to the file that has the name now."""
        if self._file is not None and _has_name(self._file, self._path):
            return
        if self._file is None and faulthandler.is_enabled():
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._path.open("ab", buffering=0)
        except OSError:
            return
        faulthandler.enable(file=file, all_threads=True)
        self._file = file  # only now may the one before be closed

    def close(self) -> None:
        """Stop, and take an empty file away."""
        if self._file is None:
            return
        faulthandler.disable()
        with contextlib.suppress(OSError):
            if _has_name(self._file, self._path) and os.fstat(self._file.fileno()).st_size == 0:
                self._path.unlink()
        self._file.close()
        self._file = None


def _has_name(file: IO[bytes], path: Path) -> bool:
    try:
        here, there = os.fstat(file.fileno()), path.stat()
    except OSError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
