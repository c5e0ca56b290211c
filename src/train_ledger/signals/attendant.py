"""What is done once a second beside the training, so that the training thread need not?

Looking for requests, sampling the host, announcing phases that last, warming the recorder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Attendant"]

_TICK_S = 1.0
_CLOSE_S = 2.0
_IN_TORCH_S = 30.0
_LOOK_S = 0.05


class Attendant:
    """A daemon thread that calls each duty once a second, and what it is asked for at once."""

    def __init__(self, *duties: Callable[[], None]) -> None:
        self._duties = duties
        self._errands: list[Callable[[], None]] = []
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._attend, name="train-ledger-attendant", daemon=True)

    def start(self) -> str | None:
        """Begin; returns why not, in words."""
        try:
            self._thread.start()
        except RuntimeError as error:
            return f"requests are not answered: {error}"
        return None

    def send(self, errand: Callable[[], None]) -> None:
        """Have something done soon, once."""
        self._errands.append(errand)
        self._wake.set()

    def close(self, in_torch: Callable[[], bool] = lambda: False) -> None:
        """Stop after what is being done, which is waited for a little, and longer while it is `in_torch`.

        Python ends its daemon threads where they next want its lock; in the midst of torch's C++ that aborts
        the process.
        """
        self._closing = True
        self._wake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_S)
            deadline = time.monotonic() + _IN_TORCH_S
            while self._thread.is_alive() and in_torch() and time.monotonic() < deadline:
                self._thread.join(_LOOK_S)

    def _attend(self) -> None:
        while not self._closing:
            self._wake.wait(_TICK_S)
            self._wake.clear()
            while self._errands:
                self._errands.pop(0)()
            for duty in self._duties:
                if not self._closing:
                    duty()
