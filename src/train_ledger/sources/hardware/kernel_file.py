"""What does the kernel of this host write, by a file that a syslog daemon keeps?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from train_ledger.sources.files.follow import Follower
from train_ledger.sources.files.positions import Position, Start
from train_ledger.sources.hardware.kernel_message import KernelMessage, matters
from train_ledger.sources.logs.kernel_log import when_told

__all__ = ["KernelFile"]

_POLL_BYTES = 4 << 20
_TAIL_BYTES = 4 << 20


class KernelFile:
    """The lines of a log at `path`, through rotation and truncation, from `since_t` (unix seconds) on.

    Lines that tell no time are taken from the first look on, and written as they stand. `trouble` says why
    nothing is read.
    """

    name: ClassVar[str] = "file"

    def __init__(self, path: Path, *, since_t: float, place: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._follower = Follower(path)
        self._since_t = since_t
        known = _known(path, place)
        self._goes_on = bool(known)
        self._has_looked = False
        self._follower.begin(Start(known, _TAIL_BYTES))

    @property
    def trouble(self) -> str | None:
        problem = self._follower.last_problem
        return problem or (None if self._follower.files else f"{self.path}: there is no such file")

    def poll(self) -> list[KernelMessage]:
        """What matters of the lines since the last look."""
        messages: list[KernelMessage] = []
        now = time.time()
        for line in self._follower.poll(_POLL_BYTES):
            text = line.data.decode("utf-8", "replace").strip()
            if matters(text) and self._is_new(t := when_told(text, written_t=now)):
                messages.append(_message(text, t))
        self._has_looked = self._has_looked or self._follower.caught_up
        return messages

    def _is_new(self, t: float | None) -> bool:
        if self._goes_on or self._has_looked:
            return True
        return t is not None and t >= self._since_t

    def place(self) -> Mapping[str, Any]:
        """Where this reader stands, for one that comes after it."""
        return {
            "by": self.name,
            "path": str(self.path),
            "at": msgspec.to_builtins(self._follower.positions()),
        }

    def close(self) -> None:
        self._follower.close()


def _message(text: str, t: float | None) -> KernelMessage:
    """A stamped line without what stands before its message, where that is seen."""
    if t is None:
        return KernelMessage(None, text)
    _, is_tagged, message = text.partition(" kernel: ")
    return KernelMessage(t, message if is_tagged else text)


def _known(path: Path, place: Mapping[str, Any] | None) -> tuple[Position, ...]:
    if not place or place.get("by") != KernelFile.name or place.get("path") != str(path):
        return ()
    try:
        return msgspec.convert(place.get("at"), tuple[Position, ...])
    except msgspec.ValidationError:
        return ()
