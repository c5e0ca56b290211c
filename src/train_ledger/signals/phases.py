"""What is the rank doing now, and how long did each part of the step take?

A phase is timed by the wall and, where CUDA is initialised, by two events on the current stream that are read
back a step later – by `query`, never by a synchronisation. Phases that raise a reader's patience (a
checkpoint, an evaluation, …) are written at once; the short ones of every step only when they have been open
for a second, since that is when somebody may want to know where a hung rank stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from train_ledger.signals.gpu_clock import GpuClock

__all__ = ["FIELD_OF_PHASE", "OpenPhase", "Phases"]

FIELD_OF_PHASE = {
    "data": "data_wait_s",
    "forward": "fwd_s",
    "backward": "bwd_s",
    "optimizer": "opt_s",
    "checkpoint_save": "ckpt_s",
}
_ON_THE_GPU = {"forward", "backward", "optimizer"}
_QUIET = {"data", "forward", "backward", "optimizer"}
_LONG_S = 1.0

Write = Callable[..., None]


class Phases:
    """The phases of one process; `write(name, t=…, **details)` writes an event line."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._open: list[OpenPhase] = []
        self._spent: dict[str, float] = {}
        self._gpu = GpuClock()
        self.raised: tuple[BaseException, str] | None = None

    def begin(self, name: str) -> OpenPhase:
        return OpenPhase(self, name)

    def take(self) -> dict[str, float]:
        """Seconds by field since the last call; GPU times are those of the step before."""
        spent, self._spent = self._spent, {}
        return {**spent, **self._gpu.take()}

    def announce_long(self) -> None:
        """Write the start of quiet phases that have been open for long; called by a background thread."""
        now = time.monotonic()
        for phase in tuple(self._open):
            if not phase.announced and now - phase.begun > _LONG_S:
                phase.announce()

    def close_all(self) -> None:
        """End what is still open, innermost first: the process is about to end."""
        for phase in reversed(tuple(self._open)):
            phase.end()

    def innermost(self) -> str | None:
        return self._open[-1].name if self._open else None

    # Called by OpenPhase

    def entered(self, phase: OpenPhase) -> None:
        self._open.append(phase)
        if phase.name not in _QUIET:
            phase.announce()
        elif phase.name in _ON_THE_GPU:
            phase.gpu = self._gpu.mark()

    def left(self, phase: OpenPhase, took_s: float) -> None:
        if phase in self._open:
            self._open.remove(phase)
        field = FIELD_OF_PHASE.get(phase.name)
        if field is None:
            return
        if phase.gpu is None:
            self._spent[field] = self._spent.get(field, 0.0) + took_s
        else:
            self._gpu.pair(field, phase.gpu)

    def write(self, event: str, phase: OpenPhase, t: float) -> None:
        self._write(event, t=t, phase=phase.name)


class OpenPhase:
    """One phase while it lasts; a context manager."""

    __slots__ = ("_end_once", "_phases", "announced", "begun", "begun_t", "ended_t", "gpu", "name")

    def __init__(self, phases: Phases, name: str) -> None:
        self._phases = phases
        self.name = name
        self.announced = False
        self.begun = self.begun_t = 0.0
        self.ended_t: float | None = None
        self.gpu: Any = None
        self._end_once = [True]

    def __enter__(self) -> OpenPhase:
        self.begun, self.begun_t = time.monotonic(), time.time()
        self._phases.entered(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and (self._phases.raised is None or self._phases.raised[0] is not error):
            self._phases.raised = (error, self.name)
        self.end()

    def end(self) -> None:
        if self.ended_t is not None:
            return
        took_s = time.monotonic() - self.begun
        self.ended_t = self.begun_t + took_s
        self._phases.left(self, took_s)
        if self.announced:
            self._write_end()

    def announce(self) -> None:
        """Write the start; where the phase ended meanwhile on its own thread, whoever sees that writes the end."""
        self._phases.write("phase_start", self, self.begun_t)
        self.announced = True
        if self.ended_t is not None:
            self._write_end()

    def _write_end(self) -> None:
        try:
            self._end_once.pop()  # atomic: two threads may come here, one writes
        except IndexError:
            return
        self._phases.write("phase_end", self, self.ended_t or time.time())
