"""What is done once a second beside the training, so that the training thread need not?

Looks for requests, samples the host, announces phases that last, and turns the first recorded collective's
addresses into lines once, so that a later dump with stacks does not take seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from train_ledger.signals.dump import NoRecorderError, has_entries, recorded

__all__ = ["Attendant", "warm_recorder"]

_TICK_S = 1.0


class Attendant:
    """A daemon thread that calls each duty once a second, and what it is asked for at once."""

    def __init__(self, duties: tuple[Callable[[], None], ...]) -> None:
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

    def close(self) -> None:
        """Stop after what is being done; not waited for."""
        self._closing = True
        self._wake.set()

    def _attend(self) -> None:
        while not self._closing:
            self._wake.wait(_TICK_S)
            self._wake.clear()
            while self._errands:
                self._errands.pop(0)()
            for duty in self._duties:
                if not self._closing:
                    duty()


def warm_recorder() -> Callable[[], None]:
    """A duty that takes one dump with stacks when the first collective has been recorded, and then rests."""
    warm = False

    def duty() -> None:
        nonlocal warm
        if warm:
            return
        try:
            if has_entries(recorded(with_stacks=False)):
                recorded(with_stacks=True)
                warm = True
        except NoRecorderError:
            return  # torch.distributed may yet be imported

    return duty
