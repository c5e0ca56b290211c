"""Where does reading begin in a file that is opened?

Where an earlier reader of it stopped; else at its start, or at its end where the files that are there at the
first look are too much together.
"""

from __future__ import annotations

from train_ledger.sources.files.followed import Followed
from train_ledger.sources.files.positions import Known, Position, Start
from train_ledger.sources.files.stream import Stream

__all__ = ["Beginnings"]


class Beginnings:
    """The beginnings of all files of one follower; what nobody knows once its first look is over is new."""

    def __init__(self, start: Start | None = None) -> None:
        self._start = start or Start()
        self._known = Known(self._start.known)
        self._unknown: list[Stream] | None = []

    def keep(self, position: Position) -> None:
        """Where a file stood that was let go and may come back."""
        self._known.add(position)

    def resume(self, followed: Followed) -> None:
        """Go on where an earlier reader of this file stopped."""
        known = list(self._known.of(followed.identity, followed.name.path))
        fitting = next((position for position in known if followed.stream.resume(position)), None)
        if fitting:
            self._known.drop(fitting)
        elif any((position.device, position.inode) == followed.identity for position in known):
            followed.stream.start_over()
        elif self._unknown is not None:
            self._unknown.append(followed.stream)

    def first_look_is_over(self) -> None:
        """Files were found: reading begins now in those that nobody knows."""
        if self._unknown is None:
            return
        tail = self._start.tail(stream.size for stream in self._unknown)
        if tail:
            for stream in self._unknown:
                stream.start_at_tail(tail)
        self._unknown = None
        self._known.clear()
