"""Which files of a run directory are logs, and what is new in them?"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from train_ledger.sources.follow import Follower, Name

__all__ = ["LogFollower"]

_LISTING_S = 5.0
_MOST_FILES = 10_000
_FOLDERS = ("logs", "structured_logs", "hardware")


class LogFollower(Follower):
    """Follows the logs of all folders of a run in which logs lie."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._listed: list[Name] = []
        self._listed_s = -math.inf

    def _names(self) -> Sequence[Name]:
        now = time.monotonic()
        if not self._listed or now - self._listed_s >= _LISTING_S:
            self._listed_s = now
            self._listed = [
                Name(series, 0, path) for series, path in enumerate(sorted(self._found())[:_MOST_FILES])
            ]
        return self._listed

    def _found(self) -> Iterator[str]:
        for folder in _FOLDERS:
            for at, below, names in os.walk(self.path / folder):
                below[:] = [name for name in below if not name.startswith(".")]
                wanted = (name for name in names if _is_log(folder, name))
                yield from (os.path.join(at, name) for name in wanted)


def _is_log(folder: str, name: str) -> bool:
    packed = name.endswith((".gz", ".xz", ".zst", ".bz2", ".tar"))
    of_kernel = folder != "hardware" or name.endswith(".kern.log")
    return not name.startswith(".") and not packed and of_kernel
