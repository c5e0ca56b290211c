"""Who is told about an incident, and what is found out first?

The first answers – dumps, stacks, verdict – run beside the keeper's turns. The page waits for them, but
never longer than `[respond] page_waits_s`: one message that names the rank is worth a few seconds, and no
answer may hold it up.

A run that stands still again, elsewhere or in another attempt, while its incident is open is looked at again:
what was found before says nothing about it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from train_ledger.answer import Diagnosis, to_json
from train_ledger.config import Config
from train_ledger.dash import Action, Alert, Incident, Transition
from train_ledger.ledger import RunState
from train_ledger.run_dir import RunDir
from train_ledger.watch.book import Book
from train_ledger.watch.hooks import Hooks
from train_ledger.watch.messages import (
    again_id,
    again_message,
    page_id,
    page_message,
    repeat_message,
    resolved_message,
    update_message,
)
from train_ledger.watch.post import Post
from train_ledger.watch.recall import Place, Recall, as_place
from train_ledger.watch.records import kept_picture, write_draft, write_records
from train_ledger.watch.recovery_words import came_back
from train_ledger.watch.respond import MOST_SAID, Answering, FirstAnswers, living, respond
from train_ledger.watch.standing import standing_place, stands_again

__all__ = ["Desk"]

_STANDS = "TrainingStepStalled"


class Desk:
    """Answers and messages of one run's incidents, on from where an earlier keeper stood (`before`).

    `answers` finds the first answers; None: those of ranks that can be asked from here.
    """

    def __init__(
        self,
        run_dir: RunDir,
        config: Config,
        run_name: str,
        book: Book,
        before: Recall,
        answers: Answering | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._config = config
        self.run_name = run_name
        self._book = book
        self._answers = answers
        self._messages = Post(run_dir, book, before, self._told)
        self._workers = ThreadPoolExecutor(1, thread_name_prefix="first answers")
        self._ending = threading.Event()
        self._answering: dict[str, tuple[Place | None, Future[FirstAnswers]]] = {}
        self._answered = dict(before.answered)
        self._digest = before.digest
        self._in_page: dict[str, Collection[Alert]] = {}
        self._hooks = Hooks(run_dir, config, book, book.before)
        self.diagnosis: Diagnosis | None = None
        self.verdict: Mapping[str, Any] = before.verdict
        self.picture = kept_picture(run_dir, before.verdict.get("incident"))

    def attend(self, incident: Incident, state: RunState) -> None:
        """Find out about an open incident and page for it, each once; again where it stands still again."""
        place = standing_place(state)
        if incident.id in self._answering or not self._is_answered(incident, place):
            self._answer(incident, place, state)
        self._page(incident, state)
        fits = as_place(self.verdict.get("place")) == place
        if self._found(incident) is not None and fits:
            self._hooks.attend(incident.id, self.verdict, state, self.run_name)

    def _page(self, incident: Incident, state: RunState) -> None:
        if self._messages.has(page_id(incident.id)):
            return
        waited_s = state.t - incident.opened_t
        if self._is_answered(incident, None) or waited_s >= self._config.respond.page_waits_s:
            found = self._found(incident)
            self._in_page[incident.id] = [member.alert for member in incident.members]
            hooks = self._hooks.planned(self.verdict, state) if found is not None else ()
            path = str(self._run_dir.path)
            page = page_message(self._config, self.run_name, incident, found, run_path=path, hooks=hooks)
            self._messages.post(incident.id, page)

    def tell(self, action: Action, state: RunState) -> None:
        """Send what an action of a known incident asks for; its page is sent by `attend`."""
        incident = action.incident.id
        if action.kind == "update":
            named = self._in_page.get(incident, ())
            apart = self._told_apart(action.incident, state)
            joined = tuple(it for it in action.alerts if it not in named and it.name not in apart)
            if joined:  # what joined while the page waited for its verdict stands in it
                found, told = self._found(action.incident), replace(action, alerts=joined)
                self._messages.post(incident, update_message(self._config, self.run_name, told, found))
        elif action.kind == "repeat":
            found = self._found(action.incident)
            self._messages.post(incident, repeat_message(self._config, self.run_name, action, found))
        elif action.kind == "close":
            write_draft(self._run_dir, self._config, incident)
            if self._messages.has(page_id(incident)):
                back = came_back(state, action.incident.opened_t)
                found, step_s = self._found(action.incident), state.p50_step_time_s
                ended = resolved_message(
                    self._config, self.run_name, action, back, verdict=found, step_s=step_s
                )
                self._messages.post(incident, ended)

    def note(self, transition: Transition) -> None:
        """Keep what fired on record for the next digest."""
        self._digest.take(transition)

    def tell_digest(self, state: RunState) -> None:
        """Send the records of the last while, where it is time and somebody is to be told of them."""
        notify = self._config.notify
        if notify.digest_urls and self._digest.is_due(state.t, notify.digest_s, finished=state.finished):
            message = self._digest.message(notify, self.run_name)
            self._digest.told(message.id)
            self._messages.post(None, message)

    def note_outcomes(self) -> None:
        """Journal what became of messages and hooks; start senders again that were killed too early."""
        self._hooks.note_outcomes()
        self._messages.note_outcomes()

    def note_late_answers(self, open_incidents: Iterable[Incident]) -> None:
        """Journal what was found out about incidents that closed in the meantime; nobody is told anew."""
        attended = {incident.id for incident in open_incidents}
        for incident, (place, future) in list(self._answering.items()):
            if incident not in attended and future.done():
                del self._answering[incident]
                self._note_findings(incident, place, future)
                write_draft(self._run_dir, self._config, incident)

    def is_idle(self, incidents: Iterable[Incident]) -> bool:
        """Whether nothing is being found out or sent, and every one of these incidents has been paged."""
        paged = all(self._messages.has(page_id(incident.id)) for incident in incidents)
        return paged and self._hooks.is_idle and not self._answering and self._messages.is_idle

    def close(self) -> None:
        self._ending.set()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _is_answered(self, incident: Incident, place: Place | None) -> bool:
        places = self._answered.get(incident.id)
        return places is not None and (place is None or place in places)

    def _answer(self, incident: Incident, place: Place | None, state: RunState) -> None:
        if not self._config.respond.on_page:  # nobody asked for answers; where it stands is told all the same
            self._tell_again(incident, state, place, self._noted(incident.id, place))
        elif incident.id not in self._answering:
            on_page = self._config.respond.on_page
            self._book.record(
                "response_started", incident=incident.id, living=len(living(state)), on_page=on_page
            )
            request = f"{incident.id}-{state.attempt}-{state.step}"
            future = self._workers.submit(
                self._answers or respond, self._run_dir, self._config, state, request, self._ending
            )
            self._answering[incident.id] = place, future
        elif self._answering[incident.id][1].done():
            self._note_answers(incident, state, *self._answering.pop(incident.id))

    def _note_answers(
        self, incident: Incident, state: RunState, place: Place | None, future: Future[FirstAnswers]
    ) -> None:
        before = self._answered.get(incident.id)
        self._note_findings(incident.id, place, future)
        self._tell_again(incident, state, place, before)

    def _tell_again(
        self,
        incident: Incident,
        state: RunState,
        place: Place | None,
        before: Collection[Place | None] | None,
    ) -> None:
        if before is not None and place is not None and stands_again(incident, state, before):
            found = self._found(incident)
            self._messages.post(
                incident.id, again_message(self._config, self.run_name, incident, place, before, found)
            )

    def _told_apart(self, incident: Incident, state: RunState) -> Collection[str]:
        """The alerts of which `attend` says more: that the run stands still again, and where."""
        place, before = standing_place(state), self._answered.get(incident.id)
        if place is None or before is None:
            return ()
        again = place not in before and stands_again(incident, state, before)
        return (_STANDS,) if again or self._messages.has(again_id(incident.id, place)) else ()

    def _note_findings(self, incident: str, place: Place | None, future: Future[FirstAnswers]) -> None:
        self._noted(incident, place)
        error = future.exception()
        if error is None:
            self._note_verdict(incident, place, future.result())
        else:  # whatever went wrong in finding out, the page goes out without it
            self._book.record("response_failed", incident=incident, error=f"{type(error).__name__}: {error}")

    def _noted(self, incident: str, place: Place | None) -> frozenset[Place | None] | None:
        """Note a place as looked at; returns the earlier ones, None where there were none."""
        before = self._answered.get(incident)
        self._answered[incident] = (before or frozenset()) | {place}
        return before

    def _note_verdict(self, incident: str, place: Place | None, answers: FirstAnswers) -> None:
        self.diagnosis, self.picture = answers.diagnosis, answers.picture
        taken = answers.collected
        self._book.record(
            "response_done",
            incident=incident,
            summary=answers.summary,
            dumps=len(taken.dumped),
            stacks=len(taken.stacked),
            missing=taken.missing[:MOST_SAID],
        )
        self.verdict = self._book.record(
            "verdict", incident=incident, place=place, diagnosis=to_json(self.diagnosis)
        )
        self._book.console.show(self.diagnosis, answers.picture)
        records = write_records(self._run_dir, self._config, incident, self.diagnosis, answers.picture)
        for written in records:
            self._book.console.remark(written)

    def _found(self, incident: Incident) -> Mapping[str, Any] | None:
        """The verdict on this incident, by this keeper or an earlier one."""
        return self.verdict["diagnosis"] if self.verdict.get("incident") == incident.id else None

    def _told(self, incident: str | None) -> None:
        """The timeline of a draft ends with what was told."""
        if incident is not None and incident in self._answered:
            write_draft(self._run_dir, self._config, incident)
