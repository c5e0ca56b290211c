"""What is the rank doing now, and how long did each part of the step take?

A phase is timed by the wall and, where CUDA is initialised, by two events on the current stream that are
read back a step later (gpu_clock). The phases that raise a reader's patience – a checkpoint, an evaluation –
are written at once; the short ones of every step only when they have been open for a second, since that is
when somebody may want to know where a hung rank stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from train_ledger.signals.harmless.marks import mark, marked
from train_ledger.signals.timing.gpu_clock import GpuClock
from train_ledger.signals.timing.work_clock import WorkClock

__all__ = ["FIELD_OF_PHASE", "OpenPhase", "Phases"]

FIELD_OF_PHASE = {
    "data": "data_wait_s",
    "forward": "fwd_s",
    "backward": "bwd_s",
    "optimizer": "opt_s",
    "checkpoint_save": "ckpt_s",
}
_ON_THE_GPU = frozenset({"forward", "backward", "optimizer"})
_WRITTEN_AT_ONCE = frozenset(
    {"start_up", "compile", "checkpoint_save", "checkpoint_load", "evaluation", "shutdown"}
)
_NO_WORK_OF_THE_STEP = frozenset({"compile", "data", "checkpoint_save", "checkpoint_load", "evaluation"})
_LONG_S = 1.0
_MOST_OPEN = 64


class Phases:
    """The phases of one process; `write(event, t=…, phase=…)` writes an event line.

    `work` is told of those that are no part of a step's own work.
    """

    def __init__(self, write: Callable[..., None], work: WorkClock | None = None) -> None:
        self.write = write
        self._work = work or WorkClock()
        self.gpu = GpuClock()
        self._open: list[OpenPhase] = []
        self._spent: dict[str, float] = {}
        self._told_many = False

    def begin(self, name: str, *, only_if_long: bool = False) -> OpenPhase:
        """A phase that begins with its `with`; with `only_if_long` it is written once it lasts."""
        return OpenPhase(self, name, only_if_long)

    def take(self) -> dict[str, float]:
        """Seconds by field since the last call; GPU times are those of the step before."""
        spent, self._spent = self._spent, {}
        spent.update(self.gpu.take())
        return spent

    def announce_long(self) -> None:
        """Write the start of phases that have been open for long; called by a background thread."""
        now = time.monotonic()
        for phase in tuple(self._open):
            if not phase.announced and now - phase.begun > _LONG_S:
                phase.announce()

    def close_all(self) -> None:
        """End what is still open, innermost first: the process is about to end."""
        for phase in reversed(tuple(self._open)):
            phase.end()

    def raised_in(self, error: BaseException) -> str | None:
        """The innermost phase that `error` has passed through."""
        return marked(error, "phase")

    # Called by OpenPhase

    def entered(self, phase: OpenPhase) -> None:
        self._open.append(phase)
        if len(self._open) > _MOST_OPEN:
            self._forget_oldest()
        phase.apart = phase.name in _NO_WORK_OF_THE_STEP and self._work.enter_apart()
        if phase.name in _WRITTEN_AT_ONCE and not phase.only_if_long:
            phase.announce()
        elif phase.name in _ON_THE_GPU:
            phase.gpu_start = self.gpu.mark()

    def left(self, phase: OpenPhase, took_s: float) -> None:
        self.closed(phase)
        field = FIELD_OF_PHASE.get(phase.name)
        if field is None:
            return
        if phase.gpu_start is None:
            self._spent[field] = self._spent.get(field, 0.0) + took_s
        else:
            self.gpu.pair(field, phase.gpu_start)

    def closed(self, phase: OpenPhase, counts: bool = True) -> None:
        if phase.apart:
            self._work.leave_apart(counts)
        if self._open and self._open[-1] is phase:
            self._open.pop()
        elif phase in self._open:  # else it has been open for too long and is forgotten
            self._open.remove(phase)

    def _forget_oldest(self) -> None:
        """A phase that is entered by hand and never left must not cost more and more."""
        oldest = self._open.pop(0)
        if oldest.apart:
            self._work.leave_apart(counts=False)
        oldest.forget()
        if not self._told_many:
            self._told_many = True
            self.write(
                "warning",
                about="phases",
                message=f"more than {_MOST_OPEN} phases are open at once, so the oldest are taken for ended; "
                "enter each by `with monitor.phase(…):`, which leaves it",
            )

    def passed_by(self, error: BaseException, phase: OpenPhase) -> None:
        if self.raised_in(error) is None:
            mark(error, "phase", phase.name)


class OpenPhase:
    """One phase while it lasts; a context manager."""

    __slots__ = (
        "_end_once",
        "_phases",
        "announced",
        "apart",
        "begun",
        "begun_t",
        "ended_t",
        "gpu_start",
        "name",
        "only_if_long",
    )

    def __init__(self, phases: Phases, name: str, only_if_long: bool = False) -> None:
        self._phases = phases
        self.name = name
        self.only_if_long = only_if_long
        self.ended_t: float | None = 0.0  # there is nothing to end before it begins

    def _reset(self) -> None:
        self.begun, self.begun_t = time.monotonic(), time.time()
        self.ended_t = None
        self.announced = self.apart = False
        self.gpu_start: Any = None
        self._end_once = [True]

    def __enter__(self) -> OpenPhase:
        self._reset()
        self._phases.entered(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._phases.passed_by(error, self)
        self.end()

    def end(self) -> None:
        """End the phase; a second call does nothing."""
        if self.ended_t is not None:
            return
        took_s = time.monotonic() - self.begun
        self.ended_t = self.begun_t + took_s
        self._phases.left(self, took_s)
        if self.announced:
            self._write_end()

    def drop(self) -> None:
        """End the phase, which was not what it seemed when it began: its time counts nowhere."""
        if self.ended_t is None:
            self._phases.closed(self, counts=False)
            self.forget()

    def forget(self) -> None:
        """End the phase for the reader; how long it took nobody knows."""
        self.ended_t = time.time()
        if self.announced:
            self._write_end()

    def announce(self) -> None:
        """Write the start; if the phase has ended meanwhile on its thread, whoever sees it writes the end."""
        self._phases.write("phase_start", t=self.begun_t, phase=self.name)
        self.announced = True
        if self.ended_t is not None:
            self._write_end()

    def _write_end(self) -> None:
        try:
            self._end_once.pop()  # atomic: where two threads come here, one writes
        except IndexError:
            return
        self._phases.write("phase_end", t=self.ended_t, phase=self.name)
