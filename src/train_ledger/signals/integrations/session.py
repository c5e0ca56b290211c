"""What has every framework's training in common: a beginning, steps, what is being done between them, an end?

Whatever a framework hands over may differ from version to version; what surprises us is told once and never
reaches the training.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from train_ledger.signals.ending.last_words import words
from train_ledger.signals.monitor import Monitor
from train_ledger.signals.saving import Saving
from train_ledger.signals.start import start
from train_ledger.signals.timing.phases import OpenPhase

__all__ = ["Run", "Session", "unharmed"]

Run = str | os.PathLike[str] | Monitor
"""A run directory, or the monitor that the script has started itself and closes itself."""

_SURPRISES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Session:
    """One training of a framework; every call is cheap, and none raises for what the machine does.

    The monitor is started at once or, where the rank is not known yet, when it is first needed.
    """

    def __init__(self, run: Run, options: dict[str, Any], *, at_once: bool = True) -> None:
        self._run = run
        self._options = options
        self._monitor = run if isinstance(run, Monitor) else None
        self._open: AbstractContextManager[Any] | None = None
        self._surprised: set[str] = set()
        self.live = True
        """False between the end of a training and the beginning of the next."""
        if at_once and self._monitor is None:
            self._start()

    def _start(self) -> Monitor:
        assert not isinstance(self._run, Monitor)  # noqa: S101 – that one is there from the beginning
        self._monitor = start(self._run, **self._options)
        atexit.register(self._at_exit)  # called before what the monitor has registered
        return self._monitor

    @property
    def monitor(self) -> Monitor:
        return self._start() if self._monitor is None else self._monitor

    def begin(self, step: int) -> None:
        """The training begins, `step` steps being done.

        One that begins after another, or behind where this one stood, is a new attempt.
        """
        last = self.monitor.last_step
        again = not self.live or (last is not None and step < last)
        if again and not isinstance(self._run, Monitor):
            self.turn_to(None)
            self._start()
        self.live = True

    def turn_to(self, work: AbstractContextManager[Any] | None, *, in_place_of_it: bool = False) -> None:
        """What was being done has ended; `work` – a phase, an evaluation, a save – begins.

        `in_place_of_it`: what seemed to be a phase was `work` all along, so that its time counts nowhere.
        """
        if in_place_of_it and isinstance(self._open, OpenPhase):
            self._open.drop()
        elif self._open is not None:
            self._open.__exit__(None, None, None)
        self._open = work
        if work is not None:
            work.__enter__()

    @property
    def doing(self) -> AbstractContextManager[Any] | None:
        """What was turned to last."""
        return self._open

    def saved(self, step: int) -> None:
        """The save that was turned to is done; where its beginning was not seen nobody knows its duration."""
        saving = self._open
        self.turn_to(None, in_place_of_it=True)
        if isinstance(saving, Saving):
            saving.saved()
        else:
            self.monitor.event("ckpt_saved", step=step, durable=True)

    def end(self) -> None:
        """The training ended as it should; a monitor that is the script's own stays open."""
        self.turn_to(None)
        self.live = False
        if not isinstance(self._run, Monitor):
            self.monitor.close()

    def fail(self, error: BaseException) -> None:
        """The training ended by `error`."""
        if self._open is not None:
            self._open.__exit__(type(error), error, error.__traceback__)
            self._open = None
        self.live = False
        if not isinstance(self._run, Monitor):
            self.monitor.__exit__(type(error), error, error.__traceback__)

    def _at_exit(self) -> None:
        """Hooks tell only of saves that were done: one that is open when the process ends has failed."""
        if self.live and isinstance(self._open, Saving):
            self._open.failed(getattr(sys, "last_value", None) or "the process ended while it was saved")

    def surprise(self, where: str, error: BaseException) -> None:
        """Tell once for each place that the framework is not as we know it."""
        if where not in self._surprised:
            self._surprised.add(where)
            self.monitor.warn("integration", f"{where}: {type(error).__name__}: {words(error)}"[:500])


def unharmed(hook: Callable[..., None]) -> Callable[..., None]:
    """A hook, method of an object with a `session`, of which nothing reaches the training."""

    @functools.wraps(hook)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            hook(self, *args, **kwargs)
        except _SURPRISES as error:
            self.session.surprise(hook.__name__, error)

    return call
