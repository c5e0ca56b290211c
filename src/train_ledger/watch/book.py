"""Where does the keeper write down and say what it does?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from train_ledger.fields import written_number
from train_ledger.ledger import Journal, JournalError, journal
from train_ledger.run_dir import RunDir
from train_ledger.watch.console import Console

__all__ = ["Book"]

_TAIL = 200
_OF_INCIDENTS = 300
_STORY = frozenset(
    {"incident_opened", "response_started", "response_done", "response_failed", "verdict", "incident_closed"}
)
"""What is told of an incident once, or once a look; of its alerts and messages there may be thousands."""


class Book:
    """The journal, its last entries for the page, and the terminal: what goes into one goes into all.

    `before` holds what earlier keepers wrote, oldest first; `unread` the lines of it that could not be read.
    `of_incidents` are the newest entries that tell what an incident was and what was found of it, which the
    last entries of a busy run may not reach back to. Raises JournalError where the ledger folder cannot be
    made or the journal not read.
    """

    def __init__(self, run_dir: RunDir, console: Console, now: Callable[[], float]) -> None:
        self.console = console
        self._now = now
        self._journal = Journal(run_dir.journal)
        self.before, self.unread = journal.read(run_dir.journal)
        self.tail: deque[Mapping[str, Any]] = deque(self.before, maxlen=_TAIL)
        named = filter(_is_of_story, self.before)
        self.of_incidents: deque[Mapping[str, Any]] = deque(named, maxlen=_OF_INCIDENTS)

    def record(self, kind: str, **details: Any) -> Mapping[str, Any]:
        """Journal one entry, on the disk when this returns, and say it.

        Where the disk does not take it, that is said and nothing else comes of it: the page must go out.
        """
        return self._recorded(kind, details)[0]

    def has_recorded(self, kind: str, **details: Any) -> bool:
        """The same, for what may be done only once it is on the disk: whether it is."""
        return self._recorded(kind, details)[1]

    def close(self) -> None:
        """Let go of the journal's file."""
        self._journal.close()

    def _recorded(self, kind: str, details: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        entry = {"t": round(self._now(), 3), "kind": kind, **_finite(details)}
        is_kept = True
        try:
            self._journal.append(entry)
        except JournalError as error:
            is_kept = False
            self.console.remark(f"{error}; not journalled: {kind}")
        self.tail.append(entry)
        if _is_of_story(entry):
            self.of_incidents.append(entry)
        self.console.tell(entry)
        return entry, is_kept


def _is_of_story(entry: Mapping[str, Any]) -> bool:
    return entry.get("kind") in _STORY and entry.get("incident") is not None


def _finite(value: Any) -> Any:
    """The value with non-finite numbers as words: JSON has none, and an alert about a NaN must be kept."""
    if isinstance(value, float):
        return written_number(value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
