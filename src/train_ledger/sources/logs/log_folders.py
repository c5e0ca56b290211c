"""Which files of a run directory are logs, and what is new in them?"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from train_ledger.run_dir import RunDir
from train_ledger.sources.files.follow import Follower
from train_ledger.sources.files.followed import Name

__all__ = ["LogFollower"]

_LISTING_S = 5.0
_MOST_FILES = 10_000
_PACKED = (".gz", ".xz", ".zst", ".bz2", ".tar")


class LogFollower(Follower):
    """Follows the logs of all folders of a run in which logs lie."""

    def __init__(self, run_dir: RunDir) -> None:
        super().__init__(run_dir.path)
        self._run_dir = run_dir
        self._listed: list[Name] = []
        self._listed_s = -math.inf

    def _names(self) -> Sequence[Name]:
        now = time.monotonic()
        if not self._listed or now - self._listed_s >= _LISTING_S:
            self._listed_s = now
            found = sorted(set(self._found()))
            if len(found) > _MOST_FILES:
                folder, why = str(self.path), f"logs beyond the first {_MOST_FILES:,} are not followed"
                self.troubles.count(folder, "too_many_logs", why)
            self._listed = [Name(series, 0, path) for series, path in enumerate(found[:_MOST_FILES])]
        return self._listed

    def _found(self) -> Iterator[str]:
        run_dir = self._run_dir
        for folder in (*run_dir.log_folders(), run_dir.structured_logs):
            yield from self._below(folder)

    def _below(self, folder: Path) -> Iterator[str]:
        for at, below, names in os.walk(folder, onerror=self._unread):
            below[:] = [name for name in below if not name.startswith(".")]
            wanted = (it for it in names if not it.startswith("."))
            yield from (os.path.join(at, name) for name in wanted if not name.endswith(_PACKED))

    def _unread(self, error: OSError) -> None:
        self.troubles.met(str(error.filename or self.path), error, may_be_absent=True)
