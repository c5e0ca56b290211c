"""What would a keeper do about a run at this moment, and what comes of it when a person asks for it?

The first answers are taken, or only named; hooks are only told of: they are a keeper's, who knows what has
been done already.
"""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from train_ledger.answer import Diagnosis, to_json
from train_ledger.config import FIRST_ANSWERS, Config
from train_ledger.ledger import RunState, journal
from train_ledger.ops import examine, read_state
from train_ledger.render import Picture, ranks_in_words
from train_ledger.run_dir import RunDir
from train_ledger.watch.hook_policy import HOOKS, Done, Hook, decide, in_words
from train_ledger.watch.hooks import command_of, done_about, told_to_hook
from train_ledger.watch.recall import recall
from train_ledger.watch.respond import living, respond

__all__ = ["AnswersNow", "HookNow", "answer_now"]


@dataclass(frozen=True, slots=True)
class HookNow:
    """What a hook would do now (None where it has acted on this incident), and what it would read."""

    hook: Hook
    command: tuple[str, ...]
    does: str | None
    said: str
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnswersNow:
    """The first answers to a run as it is now; `taken` says what was taken, None in a dry run.

    `asked` are the ranks that can be asked for dumps, `stacks` those whose stacks can be taken from here.
    """

    incident: str | None
    asked: tuple[int, ...]
    stacks: tuple[int, ...]
    taken: str | None
    diagnosis: Diagnosis
    hooks: tuple[HookNow, ...] = ()
    picture: Picture | None = None

    @property
    def lines(self) -> Iterator[str]:
        """For people, without the verdict."""
        if self.taken is not None:
            yield self.taken
        elif not self.asked:
            yield "dry run: no rank is left to ask"
        else:
            yield f"dry run: {ranks_in_words(self.asked)} would be asked for the Flight Recorder"
            if self.stacks:
                yield f"dry run: stacks would be taken of {ranks_in_words(self.stacks)}"
            if others := [rank for rank in self.asked if rank not in self.stacks]:
                yield f"dry run: {ranks_in_words(others)} would be asked for their stacks"
        for hook in self.hooks:
            yield hook.said
            if hook.does == "act":
                yield f"  it runs {shlex.join(hook.command)}, which reads the verdict (--json shows it)"

    def to_json(self) -> dict[str, Any]:
        """The same for scripts."""
        hooks = [
            {"hook": it.hook, "does": it.does, "said": it.said, "command": [*it.command], "told": it.told}
            for it in self.hooks
        ]
        return {
            "schema": 1,
            "incident": self.incident,
            "dry_run": self.taken is None,
            "asked": [*self.asked],
            "stacks": [*self.stacks],
            "taken": self.taken,
            "hooks": hooks,
            "diagnosis": to_json(self.diagnosis),
        }


def answer_now(run_dir: RunDir, config: Config, *, dry_run: bool = False) -> AnswersNow:
    """Take dumps and stacks and give the verdict; in a dry run only the verdict on what lies there.

    Raises RunDirError where run.json cannot be used, JournalError where the journal cannot be read.
    """
    entries = journal.read(run_dir.journal).entries
    state = read_state(run_dir, config)
    asked = living(state)
    incidents = recall(entries, config.alerts).incidents.open
    incident = incidents[-1].id if incidents else None
    taken, picture = None, None
    if dry_run:
        diagnosis, picture = examine(run_dir, config, state=state)
    else:
        all_of_it = replace(config, respond=replace(config.respond, on_page=FIRST_ANSWERS))
        answers = respond(run_dir, all_of_it, state, f"by-hand-{time.time():.0f}")
        taken, diagnosis, picture = answers.summary, answers.diagnosis, answers.picture
    here = socket.gethostname()
    return AnswersNow(
        incident,
        tuple(rank.rank for rank in asked),
        tuple(rank.rank for rank in asked if rank.pid is not None and rank.host in (None, here)),
        taken,
        diagnosis,
        tuple(_hooks(run_dir, config, state, diagnosis, incident, done_about(incident or "", entries))),
        picture,
    )


def _hooks(
    run_dir: RunDir, config: Config, state: RunState, diagnosis: Diagnosis, incident: str | None, done: Done
) -> Iterator[HookNow]:
    found = to_json(diagnosis)
    decided = {it.hook: it for it in decide(config.respond, found, state, state.t, done)}
    for hook in HOOKS:
        command = command_of(config, hook)
        told = told_to_hook(run_dir, state.run, incident, hook, state, found)
        decision = decided.get(hook)
        if decision is not None:
            said = in_words(decision, dry_run=config.respond.dry_run)
            said += "" if config.respond.on_page else "; but [respond] on_page is off, and without it never"
            yield HookNow(hook, command, decision.does, said, told)
        elif command:
            yield HookNow(hook, command, None, f"{hook}_command has acted on this incident already", told)
        else:
            yield HookNow(hook, command, None, f"{hook}_command: none is set in [respond]", told)
