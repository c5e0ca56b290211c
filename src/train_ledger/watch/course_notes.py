"""What of the run's way from state to state stands in the journal?"""

from __future__ import annotations

from dataclasses import asdict

from train_ledger.ledger import RunState
from train_ledger.ledger.transitions import move_between
from train_ledger.watch.book import Book
from train_ledger.watch.recall import Recall

__all__ = ["CourseNotes"]


class CourseNotes:
    """Each change of state is noted once with the kind of its move, each recovery once with how it went."""

    def __init__(self, book: Book, before: Recall) -> None:
        self._book = book
        self._state, self._recovered = before.state, before.recovered

    def take(self, run: RunState) -> None:
        """Note what is new since the last look."""
        self._take_recovery(run)
        if run.state == self._state:
            return
        before, self._state = self._state, run.state
        move = move_between(before, run.state)
        at = {"step": run.step, "attempt": run.attempt, "move": move.kind if move else None}
        self._book.record("state_changed", state=run.state, before=before, **at)

    def _take_recovery(self, run: RunState) -> None:
        found = run.recovery
        if found is None or not found.is_over or (found.attempt, found.lap) == self._recovered:
            return
        self._recovered = (found.attempt, found.lap)
        if self._state is not None:  # what was over before any keeper came is no news
            self._book.record("recovered", recovery=asdict(found), step=run.step, attempt=run.attempt)
