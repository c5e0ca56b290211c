"""What happens while a run is followed?

Follow, fold, judge, journal, act – one turn after the other, in one thread. A turn writes down what it
decides before anybody acts on it, so that a keeper that was killed at any moment goes on where it stood.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

import train_ledger
from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.dash import RULES, Action, Alert, Incident, Judge, Transition
from train_ledger.ledger import Fold, Memory, MemoryUnusableError, RunState
from train_ledger.render import Picture
from train_ledger.run_dir import RunDir, RunDirError
from train_ledger.sources import Liveness, RunFacts
from train_ledger.watch.book import Book
from train_ledger.watch.clock import RunClock
from train_ledger.watch.console import Console
from train_ledger.watch.course_notes import CourseNotes
from train_ledger.watch.desk import Desk
from train_ledger.watch.recall import recall
from train_ledger.watch.respond import Answering
from train_ledger.watch.roster import Roster
from train_ledger.watch.sight import Sight
from train_ledger.watch.trace_schedule import TraceSchedule
from train_ledger.watch.unread import unread_in_words

__all__ = ["Keeper"]

_WHOLE_BYTES = 256 << 20
"""So much history is read in seconds."""
_LOGS_WHOLE_BYTES = 2 << 20
"""Of logs in which every line tells a step so much is read in a second: thousands of steps."""
_RECORDS = {
    "open": "incident_opened",
    "update": "incident_updated",
    "repeat": "incident_updated",
    "close": "incident_closed",
}


class Keeper:
    """The one process that keeps a run's journal; hold `ledger.KeeperLock` while it lives.

    `turn()` is one look, the caller decides how often. Raises RunDirError where run.json cannot be read and
    JournalError where the journal cannot.
    """

    def __init__(
        self,
        run_dir: RunDir,
        config: Config,
        console: Console,
        clock: RunClock | None = None,
        answers: Answering | None = None,
    ) -> None:
        self.run_dir, self.config = run_dir, config
        run = run_dir.read_run()
        self.run_name = run_dir.name_in(run)
        self._is_named = bool(run)
        self._clock = clock or RunClock()
        self._fold = Fold(self.run_name, config, run)
        self._book = Book(run_dir, console, self._now)
        before = recall(self._book.before, config.alerts)
        self._files = RunFacts(run_dir)
        self._caught_up = False
        self._memory = Memory(run_dir.ledger / "keeper.memory", run, None)
        self._heard_t: float | None = None
        self._liveness = Liveness()
        self._roster = Roster(run_dir)
        self._sight = Sight(run_dir)
        self._judge = Judge(RULES, config)
        self._judge.restore(before.open_alerts)
        self._incidents = before.incidents
        self._desk = Desk(run_dir, config, self.run_name, self._book, before, answers)
        self._traces = TraceSchedule(run_dir, config.trace, self._book.record)
        self._course = CourseNotes(self._book, before)
        self._not_understood = before.unknown
        self.state: RunState = self._fold.state(self._now())
        self._book.record(
            "keeper_started",
            run=self.run_name,
            pid=os.getpid(),
            host=socket.gethostname(),
            version=train_ledger.__version__,
        )
        self._goes_on, trouble = self._memory.begin(
            self._fold, self._files, whole_bytes=_WHOLE_BYTES, logs_whole_bytes=_LOGS_WHOLE_BYTES
        )
        if trouble:
            self._book.console.remark(trouble)

    def _meet_run(self) -> None:
        """Rank 0 writes run.json, and may come up after the keeper."""
        try:
            run = self.run_dir.read_run()
        except RunDirError as error:
            self._is_named = True
            self._book.console.remark(str(error))
            return
        if run:
            self._is_named = True
            self.run_name = self._desk.run_name = self.run_dir.name_in(run)
            self._fold.meet(self.run_name, run)
            self._memory.meet(run)

    def turn(self) -> None:
        """Read what is new, judge, write down, act."""
        self._read()
        if not self._caught_up:
            return  # half a history has no step clock to judge by
        self.state = self._sight.seen(self._look())
        self._course.take(self.state)
        transitions = self._judge.evaluate(self.state)
        actions = self._incidents.apply(transitions, self.state.t)
        for transition in transitions:
            self._note_transition(transition)
            self._desk.note(transition)
        for action in actions:
            self._note_action(action)
        for incident in self.open_incidents:
            self._desk.attend(incident, self.state)
        self._desk.note_late_answers(self.open_incidents)
        self._desk.tell_digest(self.state)
        self._desk.note_outcomes()
        self._traces.attend(self.state, is_troubled=bool(self.open_incidents))

    def _look(self) -> RunState:
        """The run as known now."""
        return self._fold.state(self._now())

    @property
    def open_alerts(self) -> tuple[Alert, ...]:
        return self._judge.open_alerts

    @property
    def open_incidents(self) -> tuple[Incident, ...]:
        return self._incidents.open

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The last verdict that this keeper found."""
        return self._desk.diagnosis

    @property
    def verdict(self) -> Mapping[str, Any]:
        """The journal's last verdict, of whichever keeper; {} before the first."""
        return self._desk.verdict

    @property
    def tail(self) -> tuple[Mapping[str, Any], ...]:
        """The newest entries of the journal, oldest first."""
        return tuple(self._book.tail)

    @property
    def of_incidents(self) -> tuple[Mapping[str, Any], ...]:
        """The newest entries of the journal that tell of an incident what the page shows, oldest first."""
        return tuple(self._book.of_incidents)

    @property
    def picture(self) -> Picture | None:
        """What is drawn beside the last verdict; None where nothing is, or nothing was kept of it."""
        return self._desk.picture

    @property
    def not_read(self) -> tuple[str, ...]:
        """What could not be read, in words for the page."""
        return unread_in_words(self._files, len(self._book.unread), self._not_understood)

    @property
    def is_told(self) -> bool:
        """Whether the open incident has a verdict, and every message about it has come to an end."""
        open_ids = {incident.id for incident in self.open_incidents}
        return self.verdict.get("incident") in open_ids and self._desk.is_idle(self.open_incidents)

    def close(self) -> None:
        """Keep what is known, let go of files and threads; what was written stays."""
        if self._caught_up and self.run_dir.ledger.is_dir():
            self._keep(self._memory.keep)
        self._desk.close()
        self._traces.close()
        self._files.close()
        self._book.close()

    def _read(self) -> None:
        if not self._is_named:
            self._meet_run()
        self._roster.take(self._files.fold_into(self._fold))
        heard_t = self._fold.heard_t
        if self._caught_up and heard_t is not None and heard_t != self._heard_t:
            self._clock.heard(heard_t)  # what lay there before the first look is as old as it is
        self._heard_t = heard_t
        if self._files.caught_up:
            if not self._caught_up:
                self._note_left_out()
            if self.run_dir.ledger.is_dir():  # whoever removed the run does not want its folder back
                self._write_roster()
                self._keep(self._memory.keep_if_due)
        self._caught_up = self._files.caught_up
        self._fold.add_all(self._liveness.poll(self.state.ranks.values(), self._now()))

    def _note_left_out(self) -> None:
        if self._files.left_out_bytes and not self._goes_on:
            self._book.record("history_left_out", left_out_bytes=self._files.left_out_bytes)
            self._goes_on = True

    def _keep(self, keep: Callable[[Fold, RunFacts], bool]) -> None:
        try:
            keep(self._fold, self._files)
        except MemoryUnusableError as error:
            self._book.console.remark(str(error))

    def _now(self) -> float:
        return self._clock.now(self._fold.carried(0.0))

    def _write_roster(self) -> None:
        try:
            self._roster.write()
        except OSError as error:
            self._book.console.remark(f"{self.run_dir.ranks_jsonl} cannot be written: {error.strerror}")

    def _note_transition(self, transition: Transition) -> None:
        alert = transition.alert
        self._book.record(
            f"alert_{transition.kind}",
            incident=self._incident_of(alert),
            alert=alert.name,
            level=alert.level,
            summary=alert.summary,
            inhibited=alert.inhibited,
            transition=transition.to_json(),
        )

    def _incident_of(self, alert: Alert) -> str | None:
        for incident in self.open_incidents:
            if any(member.alert.key == alert.key for member in incident.members):
                return incident.id
        return None

    def _note_action(self, action: Action) -> None:
        names = ", ".join(alert.name for alert in action.alerts)
        record = action.incident.to_json()
        self._book.record(_RECORDS[action.kind], incident=action.incident.id, alert=names, record=record)
        self._desk.tell(action, self.state)
