"""How do lines leave the training thread in microseconds?

The caller checks its values and appends to a bounded deque: no lock, no wake-up, no system call. Another
thread makes lines of what is in it (see `line_writer`). Where the file does not keep up the oldest lines are
dropped and counted; nobody waits.
"""

from __future__ import annotations

import atexit
import itertools
import os
import time
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train_ledger.run_dir import RunDir
from train_ledger.signals.harmless.values import detail, plain, whole
from train_ledger.signals.writing.complaints import Complaints
from train_ledger.signals.writing.line_writer import Entry, LineWriter
from train_ledger.signals.writing.rotation import Rotation
from train_ledger.signals.writing.sink import Sink

if TYPE_CHECKING:
    from train_ledger.signals.telling.writers import Writer

__all__ = ["SignalLogger"]

QUEUE_LINES = 20_000
_CLOSE_S = 2.0
_LATEST_T = 1e11


class SignalLogger:
    """Writes the signal lines of one rank to RUN/signals/rank_00005.jsonl.

    `log` and `event` may be called from any thread; they neither wait nor raise. `attempt` is found from the
    rank's own file where it is not given. After a fork the child's copy is silent, and one that is `silent`
    from the start has neither thread nor file. `rotation` says when the file gets its next name.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        rank: int,
        *,
        attempt: int | None = None,
        queue_lines: int = QUEUE_LINES,
        silent: bool = False,
        rotation: Rotation | None = None,
    ) -> None:
        self.rank = rank
        self.path = RunDir(Path(run_dir)).signals_of(rank)
        self.refused_values = 0
        self.also: tuple[Writer, ...] = ()
        """Who else gets the numbers of steps."""
        self._tickets = itertools.count()
        self._queue: deque[Entry] = deque(maxlen=queue_lines)
        self._silent = silent
        self._complaints = Complaints(rank)
        self._sink = Sink(self.path, rotation)
        self._writer = LineWriter(
            rank, attempt, self._queue, self._sink, self._complaints, lambda: self.refused_values
        )
        if not silent:
            self._begin()

    def _begin(self) -> None:
        try:
            self._writer.start()
        except RuntimeError as error:  # no thread to be had: the training goes on without signals
            self._silent = True
            self._complaints.add("thread", f"no signals are written: {error}")
            self._complaints.say()
        _LIVE.add(self)
        atexit.register(self.close)

    def log(self, *, step: int, **fields: float) -> None:
        """One line for a step. What is no plain number is left out, counted, and named once on stderr."""
        self.log_fields(step, fields)

    def log_fields(self, step: int, fields: dict[str, Any], compute_by: str | None = None) -> None:
        """As `log`, with the fields in a dictionary, which the logger keeps.

        `compute_by` says how compute_s and comm_wait_s were found: the one word in a line of numbers.
        """
        if type(step) is not int:
            number = self.whole_step(step)
            if number is None:
                return
            step = number
        for value in fields.values():
            if type(value) is not float and type(value) is not int:
                fields = self.plain_fields(fields)
                break
        if compute_by is not None:
            fields["compute_by"] = compute_by
        if not self._silent:
            now = time.time()
            self._queue.append((next(self._tickets), now, step, fields, None))
            for writer in self.also:
                writer.put(step, now, fields)

    def event(self, name: str, /, *, t: float | None = None, step: int | None = None, **details: Any) -> None:
        """One event line, such as `ckpt_saved`; `t` is now where it is not given.

        `details` are copied as `values.detail` says; a `step` that is no whole number is left out.
        """
        if self._silent:
            return
        number = None if step is None else self.whole_step(step)
        now = plain(t)
        if now is None or not abs(now) < _LATEST_T:
            now = time.time()
        self._queue.append((next(self._tickets), float(now), number, detail(details), str(detail(name))))

    def whole_step(self, step: object) -> int | None:
        """The step as a plain int; what is no whole number is counted, named once on stderr, and None."""
        number = whole(step)
        if number is None:
            self._refuse("step", step, "whole number", "an int")
        return number

    @property
    def dropped_lines(self) -> int:
        """Lines that were logged and will never be in the file."""
        return self._writer.dropped_lines

    def flush(self, timeout_s: float) -> bool:
        """Ask the writer to write all there is and wait for it at most `timeout_s`; True where it did."""
        deadline = time.monotonic() + timeout_s
        while self._writer.is_behind:
            if self._silent or not self._writer.is_alive() or time.monotonic() >= deadline:
                return False
            self._writer.wake()
            time.sleep(0.002)
        return True

    def close(self, timeout_s: float = _CLOSE_S) -> None:
        """Write what is left and stop; a file that takes nothing is waited for at most `timeout_s`."""
        atexit.unregister(self.close)
        self._writer.end()
        if not self._silent:
            self._writer.join(timeout_s)
        self._silent = True

    def plain_fields(self, fields: Mapping[str, object]) -> dict[str, float]:
        """The fields that are plain numbers; the others are counted."""
        kept = {}
        for name, value in fields.items():
            number = plain(value)
            if number is None:
                self._refuse(name, value)
            else:
                kept[name] = number
        return kept

    def _refuse(
        self, name: str, value: object, wanted: str = "plain number", instead: str = "a float"
    ) -> None:
        self.refused_values += 1
        kind = type(value).__name__
        self._complaints.add(
            name,
            f"{name}: a {kind} is no {wanted} and is left out; pass {instead} that the host has already, "
            "since asking a tensor for it would wait for the GPU",
        )

    def silence(self) -> None:
        """In a forked child: the lines, the thread and the file are the parent's."""
        self._silent = True
        self._queue.clear()


_LIVE: weakref.WeakSet[SignalLogger] = weakref.WeakSet()


def _silence_in_child() -> None:
    for logger in list(_LIVE):
        logger.silence()


os.register_at_fork(after_in_child=_silence_in_child)
