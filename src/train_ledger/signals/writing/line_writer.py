"""How do entries become lines in the file, beside the training and without holding it up?

A thread looks a few times a second, turns entries into lines in small slices, so that it never holds the
interpreter lock for long, and hands whole lines to the file in one write.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from train_ledger.signals.writing.attempt import next_attempt
from train_ledger.signals.writing.complaints import Complaints
from train_ledger.signals.writing.line import event_line, step_line
from train_ledger.signals.writing.sink import Sink

__all__ = ["Entry", "LineWriter"]

_POLL_S = 0.4
_SLICE_LINES = 32
_BREATH_S = 0.0005
_BATCH_BYTES = 1 << 16
# What encoding meets where a caller changes the dictionary that `log_fields` was to keep: one line is lost.
_BAD_LINE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RuntimeError, MemoryError)

# Ticket, unix seconds, step, fields or details, name of the event: a bare tuple, since it is made on the
# training thread. A gap in the tickets is a line that was dropped from the queue. All of it is plain: the
# writer never meets an object of the training's.
Entry = tuple[int, float, int | None, dict[str, Any], str | None]


class LineWriter(threading.Thread):
    """Empties the queue of one rank into its file.

    `attempt` is found from the rank's own file where it is None. `refused_values` tells how many values were
    left out of lines by now.
    """

    def __init__(
        self,
        rank: int,
        attempt: int | None,
        queue: deque[Entry],
        sink: Sink,
        complaints: Complaints,
        refused_values: Callable[[], int],
    ) -> None:
        super().__init__(name="train-ledger-writer", daemon=True)
        self._rank = rank
        self._attempt = attempt
        self._queue = queue
        self._sink = sink
        self._complaints = complaints
        self._refused_values = refused_values
        self._taken = 0
        self._highest = -1
        self._lost = 0
        self._told = (-1, 0)
        self._pending = b""
        self._busy = False
        self._closing = False
        self._wake = threading.Event()

    @property
    def dropped_lines(self) -> int:
        """Lines that were logged and will never be in the file."""
        try:
            waiting, newest = len(self._queue), self._queue[-1][0]
        except IndexError:
            waiting, newest = 0, self._highest
        return max(0, newest + 1 - self._taken - waiting) + self._lost + self._sink.lines_lost

    @property
    def is_behind(self) -> bool:
        """Whether something that was logged is not written yet."""
        return bool(self._queue) or self._busy or bool(self._pending)

    def wake(self) -> None:
        """Let it look now."""
        self._wake.set()

    def end(self) -> None:
        """Let it write what is left, and stop."""
        self._closing = True
        self._wake.set()

    def run(self) -> None:
        if self._attempt is None:
            self._attempt = next_attempt(self._sink.path)
        while True:
            self._wake.wait(_POLL_S)
            self._wake.clear()
            last_round = self._closing
            self._busy = True
            self._drain()
            self._complaints.say()
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
                self._complaints.add(
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
                return event_line(t, step, event, fields, self._rank, self._attempt or 0)
            return step_line(t, step or 0, self._with_counts(fields), self._rank, self._attempt or 0)
        except _BAD_LINE:
            self._lost += 1
            return b""

    def _with_counts(self, fields: dict[str, float]) -> dict[str, float]:
        """A step line tells the counts of lines and values lost where they have changed."""
        counts = self.dropped_lines, self._refused_values()
        if counts == self._told:
            return fields
        self._told = counts
        return {**fields, "dropped_lines": counts[0], "refused_values": counts[1]}
