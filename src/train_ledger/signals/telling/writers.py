"""How do the libraries of other programs get one rank's numbers, and are never in the training's way?

Such a library imports for seconds, hooks the exit, stdout and signals, holds the interpreter's lock, waits
for its server when the process ends, and may hang at any of these. So it runs in a process of its own. The
training appends to a bounded queue; a daemon thread turns that into lines for the process, by a pipe that it
never waits for. What the process does not take is dropped, the oldest first, and counted; why is told once,
on stderr and as an event `warning`. At the end the process is waited for a little; what it still has to send
then it sends by itself.
"""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from train_ledger.signals.harmless.stderr import Stderr
from train_ledger.signals.telling.helper_process import ABSENT, HelperProcess, line_of

__all__ = ["Writer"]

QUEUE_LINES = 10_000
_POLL_S = 0.4
_BATCH_LINES = 8
_BREATH_S = 0.0005
_CLOSE_S = 10.0
_FIRST_PAUSE_S = 30.0
_LONGEST_PAUSE_S = 3600.0
_TOLD = 20


class Writer:
    """Numbers of steps on their way to one library; `name` is what people call it.

    `program` is the module below `integrations` whose `serve` runs in the process, `settings` what it is
    given first; `warn` tells the readers of the run. `put` may be called from any thread, neither waits nor
    raises, and keeps `fields`, which must not change any more.
    """

    def __init__(
        self,
        name: str,
        program: str,
        settings: Mapping[str, Any],
        warn: Callable[[str, str], None],
        *,
        queue_lines: int = QUEUE_LINES,
        first_pause_s: float = _FIRST_PAUSE_S,
        close_s: float = _CLOSE_S,
    ) -> None:
        self.name = name
        self._program = program
        self._settings = settings
        self._warn = warn
        self._queue: deque[tuple[int, float, Mapping[str, float]]] = deque(maxlen=queue_lines)
        self._put = 0
        self._dropped = 0
        self._overflowed = 0
        self._helper: HelperProcess | None = None
        self._starts = 0
        self._pause_s = first_pause_s
        self._close_s = close_s
        self._next_start = 0.0
        self._absent = False
        self._told: set[str] = set()
        self._stderr = Stderr()
        self._wake = threading.Event()
        self._deadline: float | None = None
        self._hurried = False
        self._silent = False
        self._thread = threading.Thread(target=self._run, name=f"train-ledger-{program}", daemon=True)

    def start(self) -> str | None:
        """Begin; returns why not, in words."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self._silent = True
            return f"nothing is written to {self.name}: {error}"
        _LIVE.add(self)
        return None

    def put(self, step: int, t: float, fields: Mapping[str, float]) -> None:
        """The numbers of a step that was finished at `t`."""
        if self._silent:
            return
        self._put += 1
        if len(self._queue) == self._queue.maxlen:
            self._overflowed += 1
        self._queue.append((step, t, fields))

    @property
    def dropped_lines(self) -> int:
        """Steps that were put and that the library will never have."""
        return self._dropped + self._overflowed

    def close_soon(self) -> None:
        """Write what is left and end, within a time that `wait` waits for."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._close_s
            self._wake.set()

    def wait(self, patience_s: float = math.inf) -> None:
        """Until all is written, but not for longer than is promised; says what was dropped.

        A library that takes nothing is ended only where it had all of the time.
        """
        self.close_soon()
        if time.monotonic() + patience_s < (self._deadline or math.inf):
            self._deadline, self._hurried = time.monotonic() + patience_s, True
        if self._thread.is_alive() and self._deadline is not None:
            self._thread.join(max(0.0, self._deadline + 1.0 - time.monotonic()))
        self._silent = True
        if self.dropped_lines:
            self._warn(self._program, f"{self.dropped_lines} of {self._put} steps are not in {self.name}")

    def silence(self) -> None:
        """In a forked child: the lines and the process are the parent's."""
        self._silent = True
        self._queue.clear()
        if self._helper is not None:
            self._helper.let_go()

    # The thread

    def _run(self) -> None:
        while True:
            closing = self._deadline is not None
            self._turn()
            if closing:
                self._end()
                return
            self._wake.wait(_POLL_S)
            self._wake.clear()

    def _turn(self) -> None:
        """Hand on what the process takes; see how it does."""
        if self._helper is None and not self._absent and time.monotonic() >= self._next_start:
            self._begin()
        helper = self._helper
        if helper is None:
            return
        while helper.takes() and self._queue:
            helper.send(self._next_lines())
            time.sleep(_BREATH_S)  # gives the interpreter lock back
        helper.listen()
        if helper.ended is not None:
            self._bury(helper)
        elif self._overflowed:
            self._tell(f"it does not keep up; the oldest of more than {self._queue.maxlen} steps are dropped")

    def _begin(self) -> None:
        self._starts += 1
        try:
            self._helper = HelperProcess(self._program, {**self._settings, "start": self._starts})
        except (OSError, ValueError) as error:
            self._try_later(f"no process can be started for it: {error}")

    def _next_lines(self) -> list[bytes]:
        lines: list[bytes] = []
        while self._queue and len(lines) < _BATCH_LINES:
            step, t, fields = self._queue.popleft()
            lines.append(line_of([step, t, fields]))
        return lines

    def _bury(self, helper: HelperProcess) -> None:
        self._dropped += helper.lost
        self._helper = None
        self._absent = helper.ended == ABSENT
        if helper.ended or not helper.finishing:
            self._try_later(helper.last_words())
        helper.let_go()

    def _try_later(self, why: str) -> None:
        self._tell(why)
        self._next_start = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _tell(self, why: str) -> None:
        if why not in self._told and len(self._told) < _TOLD:
            self._told.add(why)
            message = f"{self.name}: {why}; the training goes on, and what is not written is counted"
            self._stderr.say(message)
            self._warn(self._program, message)

    def _end(self) -> None:
        deadline = self._deadline or 0.0
        while self._may_still_write() and time.monotonic() < deadline:
            self._turn()
            if not self._queue and self._helper is not None:
                self._helper.finish()
            time.sleep(0.01)
        self._dropped += len(self._queue)
        self._queue.clear()
        if self._helper is not None:
            self._dropped += self._helper.lost
            self._helper.leave(kill=not self._hurried)

    def _may_still_write(self) -> bool:
        if self._helper is not None:
            return True
        return bool(self._queue) and not self._absent and self._next_start < (self._deadline or 0.0)


_LIVE: weakref.WeakSet[Writer] = weakref.WeakSet()


def _silence_in_child() -> None:
    for writer in list(_LIVE):
        writer.silence()


os.register_at_fork(after_in_child=_silence_in_child)
