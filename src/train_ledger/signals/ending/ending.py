"""How does this rank end, and what does it still say and leave behind?

By itself, by an exception that nobody caught, by SIGTERM, by a fatal signal. Whatever it is, what is done
here ends within a second, so that it never keeps a process from dying.
"""

from __future__ import annotations

import contextlib
import os
import signal
import weakref
from collections.abc import Callable
from typing import Any

from train_ledger.signals.asking.recorder import NoRecorderError, Warmth, write_dump
from train_ledger.signals.asking.requests import Requests
from train_ledger.signals.ending.last_words import ExceptionHooks, FatalStacks, words
from train_ledger.signals.ending.wakeup import Wakeup, die_of
from train_ledger.signals.harmless.bounded import within
from train_ledger.signals.harmless.marks import mark, marked
from train_ledger.signals.timing.phases import Phases
from train_ledger.signals.voice import Voice

__all__ = ["Ending"]

_FLUSH_S = 0.25
_DUMP_S = 0.5
_LOOK_S = 1.0
_LONGEST_CHAIN = 20
_MESSAGE_CHARACTERS = 2000


class Ending:
    """The hooks and signals of one monitor; `died` is True once an exception has ended the main thread."""

    def __init__(self, monitor: Voice, phases: Phases, requests: Requests, warmth: Warmth) -> None:
        self.died = False
        self._monitor = monitor
        self._phases = phases
        self._requests = requests
        self._warmth = warmth
        self._pid = os.getpid()
        self._name = f"{monitor.run_dir.path} {monitor.rank} {monitor.attempt} {self._pid}"
        self._stacks = FatalStacks(monitor.run_dir.stacks(monitor.attempt) / f"rank_{monitor.rank}.txt")
        self._hooks: ExceptionHooks | None = None
        self._wakeup: Wakeup | None = None
        self._next_look = 0.0
        self._send: Callable[[Callable[[], None]], None] = lambda errand: None

    def watch(self, send: Callable[[Callable[[], None]], None]) -> str | None:
        """Set hooks and signals; `send` has longer work done elsewhere. Says what does not work, if so."""
        self._send = send
        self._stacks.open()
        self._hooks = ExceptionHooks(self.raised, self._monitor.close)
        self._wakeup = Wakeup(self._heard)
        _LIVE.add(self)
        return self._wakeup.trouble

    def follow_stacks_file(self) -> None:
        """Somebody may have replaced the stacks file that a fatal signal is to be written to."""
        self._stacks.renew()

    def keep_hearing(self, now: float) -> None:
        """Somebody may have taken the descriptor that signals are heard by; a look once a second is enough.

        `now` is of the monotonic clock.
        """
        if now < self._next_look or self._wakeup is None:
            return
        self._next_look = now + _LOOK_S
        trouble = self._wakeup.renew()
        if trouble:
            self._monitor.event("warning", about="signals", message=trouble)

    def close(self) -> None:
        """Take hooks and signals back: from here on the process ends by its own lights."""
        if self._hooks is not None:
            self._hooks.close()
        if self._wakeup is not None:
            self._wakeup.close()
        self._stacks.close()

    def settle(self) -> None:
        """Let what has just come be told before the last lines are written."""
        if self._wakeup is not None:
            self._wakeup.settle()

    def left_by(self, error: BaseException | None) -> None:
        """The monitor's `with` block was left by `error`."""
        if error is not None:
            self.raised(error, None)

    def raised(self, error: BaseException, thread: str | None) -> None:
        """Nobody caught `error`. On the main thread (`thread` is None) the end is near: a dump is left."""
        if isinstance(error, SystemExit):
            if _is_clean(error):
                return
            error = error.__context__ or error  # a launcher's wrapper turns what was raised into an exit code
        # What a thread died of is told again where the main thread raises it and dies of it too.
        telling = f"{'fatal' if thread is None else 'thread'} {self._name}"
        if marked(error, "told") == telling or os.getpid() != self._pid:
            return
        mark(error, "told", telling)
        details: dict[str, Any] = {
            "type": type(error).__name__,
            "message": words(error)[:_MESSAGE_CHARACTERS],
            "phase": self._phases.raised_in(error),
        }
        origin = _origin(error)
        if origin is not error:  # what a program makes of an error often hides whose fault it was
            details["origin"] = f"{type(origin).__name__}: {words(origin)}"[:_MESSAGE_CHARACTERS]
        if thread is not None:
            details |= {"thread": thread, "fatal": False}
        self._monitor.event("exception", step=self._monitor.last_step, **details)
        if thread is None:
            self.died = True
            self._leave_dump(with_stacks=self._warmth.warm)

    def _heard(self, number: int, ours: bool) -> None:
        """SIGTERM or SIGUSR1, on the wake-up thread: the main thread may hang for ever."""
        self._monitor.event("signal", step=self._monitor.last_step, number=int(number))
        if number == signal.SIGUSR1:
            if ours:
                self._send(self._dump_and_stacks)
            return
        self._leave_dump(with_stacks=False)
        if ours:
            die_of(number)

    def _leave_dump(self, with_stacks: bool) -> None:
        self._monitor.logger.flush(_FLUSH_S)
        within(_DUMP_S, lambda: self._dump(with_stacks), None)

    def _dump(self, with_stacks: bool) -> None:
        path = self._monitor.run_dir.comm_trace_of(self._monitor.rank, self._monitor.attempt)
        with contextlib.suppress(NoRecorderError):
            write_dump(path, with_stacks=False)
            if with_stacks:
                write_dump(path, with_stacks=True)

    def _dump_and_stacks(self) -> None:
        self._requests.do("sigusr1", "dump")
        self._requests.do("sigusr1", "stacks")

    def forked(self) -> None:
        """In a forked child, say a loader's worker, which is not the rank: its crashes are its own."""
        self._stacks.let_go()


_LIVE: weakref.WeakSet[Ending] = weakref.WeakSet()


def _forked_all() -> None:
    for ending in list(_LIVE):
        ending.forked()


os.register_at_fork(after_in_child=_forked_all)  # once: nothing that is registered there ever goes away


def _is_clean(error: SystemExit) -> bool:
    return error.code is None or (isinstance(error.code, int) and error.code == 0)


def _origin(error: BaseException) -> BaseException:
    """The error at the bottom of the chain of `raise … from …`, also where the program hides it."""
    for _ in range(_LONGEST_CHAIN):
        earlier = error.__cause__ or error.__context__
        if earlier is None:
            break
        error = earlier
    return error
