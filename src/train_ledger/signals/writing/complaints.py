"""What is to be told on stderr, once, by somebody who may wait for it?"""

from __future__ import annotations

from collections import deque

from train_ledger.signals.harmless.stderr import Stderr

__all__ = ["Complaints"]

_MOST = 50


class Complaints:
    """Each thing is complained of once, and of so many at most.

    `add` may be called from any thread and does not wait: a pipe that nobody reads would block the caller.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._known: set[str] = set()
        self._unsaid: deque[str] = deque()
        self._stderr = Stderr()

    def add(self, about: str, message: str) -> None:
        if about not in self._known and len(self._known) < _MOST:
            self._known.add(about)
            self._unsaid.append(f"rank {self._rank}: {message}")

    def say(self) -> None:
        """Tell what has not been told yet."""
        while self._unsaid:
            self._stderr.say(self._unsaid.popleft())
