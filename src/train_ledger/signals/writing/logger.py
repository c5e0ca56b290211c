"""How do lines leave the training thread in microseconds?

The caller checks its values and appends to a bounded deque: no lock, no wake-up, no system call. A daemon
thread looks a few times a second, turns entries into lines in small slices, so that it never holds the
interpreter lock for long, and hands whole lines to the file in one write. Where the file does not keep up the
oldest lines are dropped and counted; nobody waits.
"""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train_ledger.run_dir import RunDir
from train_ledger.signals.harmless.stderr import Stderr
from train_ledger.signals.harmless.values import detail, plain, whole
from train_ledger.signals.writing.attempt import next_attempt
from train_ledger.signals.writing.line import event_line, step_line
from train_ledger.signals.writing.rotation import Rotation
from train_ledger.signals.writing.sink import Sink

if TYPE_CHECKING:
    from train_ledger.signals.telling.writers import Writer

__all__ = ["SignalLogger"]

QUEUE_LINES = 20_000
_POLL_S = 0.4
_SLICE_LINES = 32
_BREATH_S = 0.0005
_BATCH_BYTES = 1 << 16
_CLOSE_S = 2.0
_COMPLAINTS = 50
_LATEST_T = 1e11
# What encoding meets where a caller changes the dictionary that `log_fields` was to keep: one line is lost.
_BAD_LINE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RuntimeError, MemoryError)

# Ticket, unix seconds, step, fields or details, name of the event: a bare tuple, since it is made on the
# training thread. A gap in the tickets is a line that was dropped from the queue. All of it is plain: the
# writer never meets an object of the training's.
_Entry = tuple[int, float, int | None, dict[str, Any], str | None]


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
        self._attempt = attempt
        self._tickets = itertools.count()
        self._queue: deque[_Entry] = deque(maxlen=queue_lines)
        self._taken = 0
        self._highest = -1
        self._lost = 0
        self._told_dropped = -1
        self._told_refused = 0
        self._pending = b""
        self._busy = False
        self._silent = silent
        self._complained: set[str] = set()
        self._complaints: deque[str] = deque()
        self._stderr = Stderr()
        self._sink = Sink(self.path, rotation)
        self._wake = threading.Event()
        self._closing = False
        self._writer = threading.Thread(target=self._write_for_ever, name="train-ledger-writer", daemon=True)
        if not silent:
            self._begin()

    def _begin(self) -> None:
        try:
            self._writer.start()
        except RuntimeError as error:  # no thread to be had: the training goes on without signals
            self._silent = True
            self._complain("thread", f"no signals are written: {error}")
            self._say()
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
        try:
            waiting, newest = len(self._queue), self._queue[-1][0]
        except IndexError:
            waiting, newest = 0, self._highest
        return max(0, newest + 1 - self._taken - waiting) + self._lost + self._sink.lines_lost

    def flush(self, timeout_s: float) -> bool:
        """Ask the writer to write all there is and wait for it at most `timeout_s`; True where it did."""
        deadline = time.monotonic() + timeout_s
        while self._queue or self._busy or self._pending:
            if self._silent or not self._writer.is_alive() or time.monotonic() >= deadline:
                return False
            self._wake.set()
            time.sleep(0.002)
        return True

    def close(self, timeout_s: float = _CLOSE_S) -> None:
        """Write what is left and stop; a file that takes nothing is waited for at most `timeout_s`."""
        atexit.unregister(self.close)
        self._closing = True
        self._wake.set()
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
        self._complain(
            name,
            f"{name}: a {kind} is no {wanted} and is left out; pass {instead} that the host has already, "
            "since asking a tensor for it would wait for the GPU",
        )

    def _complain(self, about: str, message: str) -> None:
        """To be said on stderr, once, by the writer: a pipe that nobody reads would block the caller."""
        if about not in self._complained and len(self._complained) < _COMPLAINTS:
            self._complained.add(about)
            self._complaints.append(f"rank {self.rank}: {message}")

    def _say(self) -> None:
        while self._complaints:
            self._stderr.say(self._complaints.popleft())

    # The writer thread

    def _write_for_ever(self) -> None:
        if self._attempt is None:
            self._attempt = next_attempt(self.path)
        while True:
            self._wake.wait(_POLL_S)
            self._wake.clear()
            last_round = self._closing
            self._busy = True
            self._drain()
            self._say()
            self._busy = False
            if last_round:
                self._lost += self._pending.count(b"\n")
                self._sink.close()
                return
            if not self._pending:
                self._sink.rotate()

    def _drain(self) -> None:
        while self._queue or self._pending:
            self._pending += self._next_batch()
            before = len(self._pending)
            self._pending = self._sink.write(self._pending)
            if self._sink.trouble and not self._closing:
                self._complain(
                    "file", f"{self._sink.trouble}; lines are kept up to {self._queue.maxlen}, then dropped"
                )
            if len(self._pending) == before or self._sink.trouble:
                return

    def _next_batch(self) -> bytes:
        lines: list[bytes] = []
        size = len(self._pending)
        while size < _BATCH_BYTES and self._queue:
            for _ in range(_SLICE_LINES):
                line = self._next_line()
                if line is None:
                    break
                lines.append(line)
                size += len(line)
            else:
                time.sleep(_BREATH_S)  # gives the interpreter lock back
        return b"".join(lines)

    def _next_line(self) -> bytes | None:
        try:
            ticket, t, step, fields, event = self._queue.popleft()
        except IndexError:
            return None
        self._taken += 1
        self._highest = max(self._highest, ticket)
        try:
            if event is not None:
                return event_line(t, step, event, fields, self.rank, self._attempt or 0)
            return step_line(t, step or 0, self._with_counts(fields), self.rank, self._attempt or 0)
        except _BAD_LINE:
            self._lost += 1
            return b""

    def _with_counts(self, fields: dict[str, float]) -> dict[str, float]:
        """A step line tells the counts of lines and values lost where they have changed."""
        dropped, refused = self.dropped_lines, self.refused_values
        if dropped == self._told_dropped and refused == self._told_refused:
            return fields
        self._told_dropped, self._told_refused = dropped, refused
        return {**fields, "dropped_lines": dropped, "refused_values": refused}

    def silence(self) -> None:
        """In a forked child: the lines, the thread and the file are the parent's."""
        self._silent = True
        self._queue.clear()


_LIVE: weakref.WeakSet[SignalLogger] = weakref.WeakSet()


def _silence_in_child() -> None:
    for logger in list(_LIVE):
        logger.silence()


os.register_at_fork(after_in_child=_silence_in_child)
