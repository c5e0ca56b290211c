"""When does a signal file become too large, and what is it called then?

rank_00005.jsonl becomes rank_00005.jsonl.1, what was .1 becomes .2, and so on: the higher the number, the
older the lines. Only names change, so a reader that holds a file open reads it to its end.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["DEFAULT_BYTES", "Rotation", "rotated"]

DEFAULT_BYTES = 256 << 20
_AGAIN_S = 60.0
_MOST_FILES = 10_000


def rotated(path: Path, age: int) -> Path:
    """The name of a file that was replaced `age` times; 0 is the file that is written.

    >>> rotated(Path("rank_00005.jsonl"), 2).name
    'rank_00005.jsonl.2'
    """
    return path.with_name(f"{path.name}.{age}") if age else path


@dataclass(slots=True)
class Rotation:
    """Rotate at about `at_bytes` (0: never) and keep `keep` old files (None: all).

    Used by the writer thread alone. A folder in which nothing can be renamed is tried again each minute.
    """

    at_bytes: int = DEFAULT_BYTES
    keep: int | None = None
    _not_before: float = field(default=0.0, repr=False)

    def is_due(self, fd: int) -> bool:
        """Whether the open file is large enough."""
        if not self.at_bytes or time.monotonic() < self._not_before:
            return False
        try:
            return os.fstat(fd).st_size >= self.at_bytes
        except OSError:
            return False

    def rename(self, path: Path) -> bool:
        """Move `path` and its older ones by one name, the oldest first; whether `path` is free now."""
        oldest = self._oldest(path)
        try:
            for age in range(oldest, -1, -1):
                if self.keep is not None and age >= self.keep:
                    rotated(path, age).unlink()
                else:
                    os.rename(rotated(path, age), rotated(path, age + 1))
        except OSError:
            self._not_before = time.monotonic() + _AGAIN_S
            return False
        return True

    def _oldest(self, path: Path) -> int:
        """The last of the old files that have one name after the other; a gap takes what comes before it."""
        with contextlib.suppress(OSError):
            for age in range(1, _MOST_FILES):
                if not os.path.lexists(rotated(path, age)):
                    return age - 1
        return _MOST_FILES - 1
