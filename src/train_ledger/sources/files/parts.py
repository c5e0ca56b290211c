"""Is it enough to look at a part of the files, since all of them are silent?

Of many files a part is looked at in each poll then: the first that speaks up brings back all the others at
once, since ranks write together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from train_ledger.sources.files.followed import Name

__all__ = ["Parts"]

_QUIET_S = 5.0
_PARTS = 4
_FEW_FILES = 64
"""So few are all looked at in each poll."""


class Parts:
    """The parts of the files of one follower, in turn."""

    def __init__(self) -> None:
        self._news_s = time.monotonic()
        self._part = 0

    def has_news(self) -> None:
        """One of the files spoke up."""
        self._news_s = time.monotonic()

    def will_do(self, names: Sequence[Name]) -> bool:
        """Whether a look at the next part of these files is enough."""
        return len(names) > _FEW_FILES and time.monotonic() - self._news_s > _QUIET_S

    def next(self, names: Sequence[Name]) -> Sequence[Name]:
        self._part = (self._part + 1) % _PARTS
        return names[self._part :: _PARTS]
