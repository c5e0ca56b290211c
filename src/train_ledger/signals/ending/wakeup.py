"""How does a rank that hangs still hear SIGTERM, tell of it, and die of it?

A Python handler runs on the main thread between two bytecodes – never, while that thread sits in a collective
– so work in a handler makes a hung rank immune. C, however, writes every signal's number to a wake-up
descriptor at once, and a thread reads it: the event is written, the Flight Recorder is dumped, and the
default action kills. The handler itself does nothing; it is there because Python writes to the descriptor
only for signals that have one. Where the program has a handler of its own it stays, and we only watch.

While C code holds the interpreter lock no thread of Python runs, this one neither: only SIGKILL ends such a
rank.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable
from functools import cache
from types import FrameType

__all__ = ["Wakeup", "die_of"]

_WATCHED = (signal.SIGTERM, signal.SIGUSR1)
_SETTLE = 0  # no signal has this number
_SETTLE_S = 0.2


class Wakeup:
    """Calls `heard(number, ours)` on a thread of its own for SIGTERM and SIGUSR1.

    `ours` is False where the program handles the signal itself, so that it is only to be told of.
    `trouble` says in words why signals are not heard, None where they are.
    """

    def __init__(self, heard: Callable[[int, bool], None]) -> None:
        self.trouble: str | None = None
        self._heard = heard
        self._settled = threading.Event()
        self._ours: list[int] = []
        self._is_taken = False
        self._reader: socket.socket | None = None
        self._writer: socket.socket | None = None
        if not _is_main():
            self.trouble = (
                "start() was not called on the main thread, where alone Python lets signals be watched"
            )
            return
        if self._take_descriptor():
            self._install()
            _GUARDED.append(self)

    def settle(self) -> None:
        """Let signals that came just now be heard: the program's own handler may be what ends the process."""
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.send(bytes([_SETTLE]))
                self._settled.wait(_SETTLE_S)

    def renew(self) -> str | None:
        """See that the descriptor is still ours; says why no longer, if so. Off the main thread nobody can.

        A loop of asyncio that has handled a signal leaves none behind: then it is taken again. Where somebody
        else's is there our handlers are given up, which would make a rank immune that hangs.
        """
        if self._writer is None or self._is_taken or not _is_main():
            return None
        found = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        if found in (self._writer.fileno(), -1):
            return None
        signal.set_wakeup_fd(found, warn_on_full_buffer=False)
        self._is_taken = True
        self._give_handlers_back()
        return "the program has taken the wake-up descriptor for itself, so SIGTERM is not written down"

    def close(self) -> None:
        """Give the signals and the descriptor back; where this is not the main thread only the signals."""
        if self in _GUARDED:
            _GUARDED.remove(self)
        self._give_handlers_back()
        if self._writer is not None and _is_main():
            with contextlib.suppress(ValueError):
                found = signal.set_wakeup_fd(-1)
                if found != self._writer.fileno():
                    signal.set_wakeup_fd(found, warn_on_full_buffer=False)
            writer, self._writer = self._writer, None
            writer.close()  # which ends the thread that reads

    def _give_handlers_back(self) -> None:
        for number in self._ours:
            if signal.getsignal(number) == self._handler:
                _restore_default(number)
        self._ours.clear()

    def _take_descriptor(self) -> bool:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        found = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        if found != -1:
            signal.set_wakeup_fd(found, warn_on_full_buffer=False)
            self._reader.close()
            self._writer.close()
            self._reader = self._writer = None
            self.trouble = "the program has a wake-up descriptor of its own, so SIGTERM is not written down"
        return found == -1

    def _install(self) -> None:
        thread = threading.Thread(target=self._listen, name="train-ledger-wakeup", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self.trouble = f"signals are not watched: {error}"
            self.close()
            return
        _libc_signal()  # looked up now: when it is needed the disk may hang
        for number in _WATCHED:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._handler)
                self._ours.append(number)

    def _listen(self) -> None:
        assert self._reader is not None  # noqa: S101 – this thread is started once the descriptor is taken
        with self._reader as reader:
            while numbers := reader.recv(64):
                self._read(numbers)

    def _read(self, numbers: bytes) -> None:
        for number in numbers:
            if number == _SETTLE:
                self._settled.set()
            elif number in _WATCHED:
                self._heard(number, signal.getsignal(number) == self._handler)

    def _handler(self, number: int, frame: FrameType | None) -> None:
        """A no-op, unless somebody has put a descriptor of his own in the place of ours."""
        if self._writer is None:
            return
        found = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        if found != self._writer.fileno():
            signal.set_wakeup_fd(found, warn_on_full_buffer=False)
            with contextlib.suppress(OSError):
                self._writer.send(bytes([number]))


class _ForkGuard(threading.local):
    """Holds our signals back while a process forks: until the child has given the handlers and the descriptor
    back, a signal to the child would be read, and died of, by the parent."""

    mask: set[int | signal.Signals] | None = None

    def before(self) -> None:
        if _GUARDED:
            self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)

    def in_parent(self) -> None:
        if self.mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
            self.mask = None

    def in_child(self) -> None:
        for wakeup in tuple(_GUARDED):
            wakeup.close()
        self.in_parent()


_GUARDED: list[Wakeup] = []
_FORK = _ForkGuard()
os.register_at_fork(before=_FORK.before, after_in_parent=_FORK.in_parent, after_in_child=_FORK.in_child)


def die_of(number: int) -> None:
    """End this process by the default action of a signal, from whatever thread."""
    _restore_default(number)
    os.kill(os.getpid(), number)


def _is_main() -> bool:
    """Whether this is the thread on which Python lets signals be seen to."""
    return threading.current_thread() is threading.main_thread()


def _restore_default(number: int) -> None:
    if _is_main():
        signal.signal(number, signal.SIG_DFL)
    else:
        _libc_signal()(int(number), None)


@cache
def _libc_signal() -> Callable[[int, None], object]:
    """C's signal(): Python's own is for the main thread alone, and that one may hang."""
    import ctypes  # here, since `import train_ledger` is to be quick

    function = ctypes.CDLL(None).signal
    function.argtypes = (ctypes.c_int, ctypes.c_void_p)
    function.restype = ctypes.c_void_p
    return function
