"""Which messages of a run have been handed over, and what became of them?

A message goes into the outbox before the journal says so; the outbox takes each id once, so a keeper that was
killed in between only repeats the entry.
"""

from __future__ import annotations

from collections.abc import Callable

from train_ledger.dash import Notification, Outbox
from train_ledger.run_dir import RunDir
from train_ledger.watch.book import Book
from train_ledger.watch.digest import is_digest
from train_ledger.watch.messages import incident_of
from train_ledger.watch.recall import Recall

__all__ = ["Post"]

_NOBODY = "nobody is told: [notify] in train-ledger.toml names no urls and no command"


class Post:
    """The messages of one run, on from where an earlier keeper stood (`before`).

    `settled` is called with the incident (None: of none) whose message has come to an end.
    """

    def __init__(
        self, run_dir: RunDir, book: Book, before: Recall, settled: Callable[[str | None], None]
    ) -> None:
        self._book = book
        self._outbox = Outbox(run_dir.ledger / "outbox")
        self._posted = set(before.intended | before.done)
        self._ended = set(before.done)
        self._settled = settled

    def has(self, message: str) -> bool:
        """Whether a message of this id was handed over, or nobody is there whom it could be told."""
        return message in self._posted

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return not self._outbox.waiting()

    def post(self, incident: str | None, message: Notification) -> None:
        """Hand a message over, once; whoever cannot be told, and why, is journalled at once."""
        if message.id in self._posted:
            return
        self._posted.add(message.id)
        if not (message.urls or message.command):
            self._settle(incident, message.id, _NOBODY)
            return
        try:
            self._outbox.post(message)
        except OSError as error:
            self._settle(incident, message.id, f"NOT SENT, the outbox cannot be written ({error})")
            return
        self._book.record("notification_intended", incident=incident, notification=message.id)

    def note_outcomes(self) -> None:
        """Journal what became of messages; start senders again that were killed too early."""
        self._outbox.resume()
        for outcome in self._outbox.outcomes(self._ended):
            text = outcome.delivery + (f": {outcome.why}" if outcome.why else "")
            incident = None if is_digest(outcome.id) else incident_of(outcome.id)
            self._settle(incident, outcome.id, text)

    def _settle(self, incident: str | None, message: str, outcome: str) -> None:
        self._ended.add(message)
        self._book.record("notification_done", incident=incident, notification=message, outcome=outcome)
        self._settled(incident)
