"""Can the run be read at all?

Where its folder is gone, or a file system does not answer with anything but an error, no line comes any more,
and that looks like a run that stands. It is said which of the two it is.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from train_ledger.ledger import RunState
from train_ledger.run_dir import RunDir

__all__ = ["Sight"]


class Sight:
    """Looks at the folder of the run and at that of its signals; once it was there it has to stay."""

    def __init__(self, run_dir: RunDir) -> None:
        self._folders = (run_dir.path, run_dir.signals)
        self._were_there: set[Path] = set()
        self._since_t: float | None = None

    def seen(self, state: RunState) -> RunState:
        """The state with what keeps it from being read, and since when; the same where nothing does."""
        trouble = next((why for folder in self._folders if (why := self._trouble(folder)) is not None), None)
        if trouble is None:
            self._since_t = None
            return state
        if self._since_t is None:
            self._since_t = state.t
        return replace(state, unreadable=trouble, unreadable_since_t=self._since_t)

    def _trouble(self, folder: Path) -> str | None:
        try:
            with os.scandir(folder):
                self._were_there.add(folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            return f"{folder}: {error.strerror}" if folder in self._were_there else None
        except OSError as error:
            return f"{folder}: {error.strerror or error}"
        return None
