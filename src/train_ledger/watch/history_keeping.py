"""Who keeps the history of a run while it is followed?

A thread of its own with its own place in the run's files, so that reading a month of steps holds up neither
the keeper nor a page: it reads a little, then rests as long. What it knows is kept in ledger/history and gone
on from; where that is lost or damaged, it is made again from the run's files.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from train_ledger.ledger.history import History, HistoryUnusableError, read_history, write_history
from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.sources import RunFacts
from train_ledger.watch.mishaps import Mishaps

__all__ = ["HistoryKeeping", "history_path"]

_AT_ONCE_BYTES = 1 << 20
_REST_S = 1.0
_EVERY_S = 60.0
_SHARE_OF_TIME = 50
"""Writing it down takes a fiftieth of the time at most."""

_NAMELESS = repr((None, None))
"""The name of a run that has no run.json (yet)."""


def history_path(run_dir: RunDir) -> Path:
    """Where the history of a run is kept."""
    return run_dir.ledger / "history"


class HistoryKeeping:
    """Follows a run from a thread until it is closed; `remark` is told what does not go well.

    Whoever looks at the history does so within `looked_at()`. `mishaps` says what of it could not be read.
    """

    def __init__(self, run_dir: RunDir, remark: Callable[[str], None] = lambda _: None) -> None:
        self._run_dir = run_dir
        self._path = history_path(run_dir)
        self._remark = remark
        self.mishaps = Mishaps(remark)
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._history = History()
        self._files = RunFacts(run_dir)
        self._name = self._named()
        self._due_s = time.monotonic() + _EVERY_S
        self._refused: str | None = None
        self._begin()
        self._thread = threading.Thread(target=self._follow, name="history", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[History]:
        """The history, which stands still meanwhile."""
        with self._lock:
            yield self._history

    @property
    def progress(self) -> float | None:
        """The share of the run's files that was read; None once there is nothing left to catch up with."""
        return self._files.progress

    def close(self) -> None:
        """Stop following and write down what is known."""
        self._ending.set()
        self._thread.join(timeout=10)
        if not self._thread.is_alive():
            self._write()
            self._files.close()

    def _named(self) -> str:
        try:
            run = self._run_dir.read_run()
        except RunDirError:  # the keeper says so
            run = {}
        return repr((run.get("run"), run.get("started")))

    def _begin(self) -> None:
        try:
            stood = read_history(self._path, self._name, self._history)
        except HistoryUnusableError as error:
            self._remark(str(error))
            return
        if stood is not None and not self._files.resume(stood):
            self._history.forget()
            self._remark(f"{self._path}: speaks of other files than those that are there; it is made again")

    def _follow(self) -> None:
        while not self._ending.is_set():
            began_s = time.monotonic()
            with self.mishaps.of("not in the curves and strips"), self._lock:
                self._files.fold_into(self._history, _AT_ONCE_BYTES)
            took_s = time.monotonic() - began_s
            if self._files.caught_up and time.monotonic() >= self._due_s:
                self._write()
            self._ending.wait(_REST_S if self._files.caught_up else took_s)

    def _write(self) -> None:
        began_s = time.monotonic()
        with self._lock:
            stands = self._files.memory()
            if stands is None or not self._files.caught_up or not self._run_dir.path.is_dir():
                return  # what is not whole is not kept; and who removed the run does not want its folder back
            if self._name == _NAMELESS:  # who watches was there before the run
                self._name = self._named()
            try:
                write_history(self._path, self._name, self._history, stands)
            except OSError as error:
                self._refuse(f"{self._path} cannot be written: {error.strerror}")
            except UnicodeEncodeError as error:  # of a file whose name is no text
                self._refuse(f"{self._path} cannot be written: {error.object!r} is no text")
        took_s = time.monotonic() - began_s
        self._due_s = time.monotonic() + max(_EVERY_S, _SHARE_OF_TIME * took_s)

    def _refuse(self, why: str) -> None:
        if why != self._refused:
            self._refused = why
            self._remark(why)
