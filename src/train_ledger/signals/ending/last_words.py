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
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

from train_ledger.signals.harmless.bounded import within
from train_ledger.signals.harmless.regular import open_regular

__all__ = ["ExceptionHooks", "FatalStacks", "words"]

_OPEN_S = 2.0

Raised = Callable[[BaseException, str | None], None]


class ExceptionHooks:
    """Calls `raised(error, thread)` for what nobody caught and `ended` at exit; `thread` is None on the main.

    A process of `multiprocessing` catches what its function raises without calling any hook; there the
    finalizer that it runs while the exception passes sees it.
    """

    def __init__(self, raised: Raised, ended: Callable[[], None]) -> None:
        self._raised = raised
        self._ended = ended
        self._excepthook = sys.excepthook
        self._thread_hook = threading.excepthook
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        atexit.register(ended)
        multiprocessing = sys.modules.get("multiprocessing.util")
        self._finalizer = multiprocessing and multiprocessing.Finalize(
            None, self._on_process_end, exitpriority=10
        )

    def close(self) -> None:
        """Take the hooks back, but leave those that somebody has put over them."""
        # A bound method is a new object at every look: == compares what it is bound to.
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._excepthook
        if threading.excepthook == self._on_thread_exception:
            threading.excepthook = self._thread_hook
        atexit.unregister(self._ended)
        if self._finalizer:
            self._finalizer.cancel()

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._raised(error, None)
        self._excepthook(kind, error, trace)

    def _on_thread_exception(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self._raised(args.exc_value, args.thread.name if args.thread else "?")
        self._thread_hook(args)

    def _on_process_end(self) -> None:
        error = sys.exc_info()[1]
        if error is not None:
            self._raised(error, None)
        self._ended()


class FatalStacks:
    """faulthandler into the rank's stacks file, for SIGABRT, SIGSEGV and their like.

    The file is there, empty, while nothing has happened. Whoever replaces it – stacks on request, py-spy from
    outside – takes the name away from the open file; `renew` follows the name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        """Begin, unless the program uses faulthandler itself."""
        if not faulthandler.is_enabled():
            within(_OPEN_S, self._enable, None)

    def renew(self) -> None:
        """Make sure that a fatal signal is written to the file that has the name now."""
        if self._file is not None and not _has_name(self._file, self._path):
            self._enable()

    def let_go(self) -> None:
        """In a forked child: its crashes are not the rank's."""
        if self._file is not None:
            faulthandler.disable()
            self._file = None

    def _enable(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            file = os.fdopen(open_regular(self._path, flags), "ab", buffering=0)
        except OSError:
            return
        faulthandler.enable(file=file, all_threads=True)
        self._file = file

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


def words(error: BaseException) -> str:
    """What the exception says; traceback knows what to do with one whose own `__str__` raises."""
    return str(traceback.TracebackException(type(error), error, None))
