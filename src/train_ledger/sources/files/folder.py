"""What was written to the files of a folder, whatever names come and go in it?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from train_ledger.sources.files.follow import DRAIN_S, Follower
from train_ledger.sources.files.followed import Name

__all__ = ["FolderFollower"]

_LISTING_SETTLED_S = 2.0
_LISTING_OLD_S = 10.0


class FolderFollower(Follower):
    """Whole lines of all files in a folder that `place` has a place for.

    `place(file name)` gives (series, age) or None: files of one series are read in the order of age, and a
    rotated file that still matches under its new name is not read again.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        place: Callable[[str], tuple[int, int] | None],
        *,
        drain_s: float = DRAIN_S,
    ) -> None:
        super().__init__(path, drain_s=drain_s)
        self._place = place
        self._places: dict[str, Name | None] = {}
        self._listed: list[Name] = []
        self._listed_s = self._touched_s = 0.0
        self._folder: tuple[int, int, int] | None = None

    def _names(self) -> Sequence[Name]:
        try:
            if self._is_touched():
                self._listed = self._list()
        except OSError as error:
            self.troubles.met(str(self.path), error, may_be_absent=True)
            self._folder = None
            self._listed = []
        return self._listed

    def _is_touched(self) -> bool:
        """Whether names may have come or gone; a folder's time may stand still within a tick of its clock."""
        status = os.stat(self.path)
        folder, now = (status.st_dev, status.st_ino, status.st_mtime_ns), time.monotonic()
        if folder != self._folder:
            self._folder, self._touched_s = folder, now
        settled = self._listed_s - self._touched_s > _LISTING_SETTLED_S
        return not settled or now - self._listed_s > _LISTING_OLD_S

    def _list(self) -> list[Name]:
        self._listed_s = time.monotonic()
        found = os.listdir(self.path)
        places = {file: self._places[file] if file in self._places else self._named(file) for file in found}
        self._places = places
        return [name for name in places.values() if name]

    def _named(self, file: str) -> Name | None:
        place = self._place(file)
        return Name(*place, str(self.path / file)) if place else None
