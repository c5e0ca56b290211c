"""What does somebody see of a run who only looks on?

Follows the files as the keeper does, but writes nothing and tells nobody; what the keeper found out is read
from its journal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from train_ledger.config import Config
from train_ledger.dash import RULES, Judge
from train_ledger.dash.page.view import PageView
from train_ledger.ledger import Fold, Memory, MemoryUnusableError, journal
from train_ledger.run_dir import RunDir
from train_ledger.sources import RunFacts
from train_ledger.watch.clock import RunClock
from train_ledger.watch.recall import recall
from train_ledger.watch.sight import Sight

__all__ = ["Following"]

_WHOLE_BYTES = 96 << 20
_LOGS_WHOLE_BYTES = 2 << 20
_TAIL = 200


class Following:
    """A run as it stands at each `look()`, with the alerts that hold now and the keeper's newest verdict.

    Of long files the first lines and the last ones are read, unless a keeper has kept what it knows. Raises
    RunDirError where run.json cannot be read and JournalError where the journal cannot.
    """

    def __init__(self, run_dir: RunDir, config: Config) -> None:
        self._run_dir, self._config = run_dir, config
        run = run_dir.read_run()
        self._fold = Fold(run_dir.name_in(run), config, run)
        self._files = RunFacts(run_dir)
        self._clock = RunClock()
        self._sight = Sight(run_dir)
        self._judge = Judge(RULES, config)
        self._heard_t: float | None = None
        self._was_caught_up = False
        self._journal_bytes = -1
        self._journal: tuple[Mapping[str, Any], ...] = ()
        self._incidents = recall((), config.alerts).incidents
        self._begin(run)

    def _begin(self, run: Mapping[str, Any]) -> None:
        memory = Memory(self._run_dir.ledger / "keeper.memory", run, None)
        try:
            goes_on = memory.recall(self._fold, self._files)
        except MemoryUnusableError:  # the keeper says so; here the files are read instead
            goes_on = False
        self._files.begin_logs_at_tail(_LOGS_WHOLE_BYTES)
        if not goes_on:
            self._files.begin_at_tail(_WHOLE_BYTES)

    @property
    def progress(self) -> float | None:
        """The share of what is to be read that was read; None once all of it was."""
        return self._files.progress

    def look(self) -> PageView:
        """Read what is new, of a backlog the next part, and say how the run stands."""
        self._files.fold_into(self._fold)
        heard_t = self._fold.heard_t
        if self._was_caught_up and heard_t is not None and heard_t != self._heard_t:
            self._clock.heard(heard_t)
        self._heard_t, self._was_caught_up = heard_t, self._files.caught_up
        self._read_journal()
        state = self._sight.seen(self._fold.state(self._clock.now(self._fold.carried(0.0))))
        if self._files.caught_up:
            self._judge.evaluate(state)
        return PageView(
            state=state,
            alerts=self._judge.open_alerts,
            incidents=self._incidents.open,
            journal=self._journal,
            not_observed=self._files.not_read,
            run_path=str(self._run_dir.path),
        )

    def _read_journal(self) -> None:
        size = _size(self._run_dir.journal)
        if size == self._journal_bytes:  # it only ever grows
            return
        self._journal_bytes = size
        entries = journal.read(self._run_dir.journal).entries
        self._incidents = recall(entries, self._config.alerts).incidents
        self._journal = tuple(entries[-_TAIL:])

    def close(self) -> None:
        self._files.close()


def _size(path: Path) -> int:
    """In bytes; 0 where there is none, or it is not to be seen, which reading it will say."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
