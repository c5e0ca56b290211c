"""Which hooks has an incident had, and what came of them?

Each acts at most once an incident, also where the keeper is killed in between: that it acts is on the disk
before it does.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from train_ledger.config import Config
from train_ledger.ledger import RunState
from train_ledger.run_dir import RunDir
from train_ledger.watch.book import Book
from train_ledger.watch.hook_policy import HOOKS, Decision, Done, Hook, decide, in_words
from train_ledger.watch.hook_run import HookRun

__all__ = ["Hooks", "command_of", "done_about", "standing_words", "told_to_hook"]

_Key = tuple[str, str]
"""(incident, hook)"""

_NOT_KEPT = "it was not run: that it is run could not be written down, and then it could be run twice"


class Hooks:
    """The hooks of one run's incidents; `before` are the entries of earlier keepers, oldest first."""

    def __init__(
        self, run_dir: RunDir, config: Config, book: Book, before: Iterable[Mapping[str, Any]]
    ) -> None:
        self._run_dir, self._config, self._book = run_dir, config, book
        self._begun, self._codes, self._said = _recalled(before)
        self._running: dict[_Key, HookRun] = {}
        for incident, hook in sorted(self._begun - self._codes.keys()):  # nothing is begun twice
            self._note_end(incident, hook, None, "the keeper that ran it was ended, and saw no end of it")

    def attend(self, incident: str, verdict: Mapping[str, Any], state: RunState, run: str) -> None:
        """Decide on the verdict entry of an open incident, whose run stands where it stood then."""
        config = self._config.respond
        for decision in decide(
            config, verdict["diagnosis"], state, float(verdict["t"]), self._done(incident)
        ):
            key = (incident, decision.hook)
            said_t, does, why = self._said.get(key, (None, "", ""))
            if said_t == verdict["t"] and (does, why) == (decision.does, decision.why):
                continue
            if said_t == verdict["t"] and does != "wait":
                continue  # on one verdict nothing is decided twice, but for what waits
            self._said[key] = (verdict["t"], decision.does, decision.why)
            is_kept = self._has_noted(incident, verdict["t"], decision)
            if decision.does == "act" and not config.dry_run:
                self._begun.add(key)
                if is_kept:
                    told = told_to_hook(
                        self._run_dir, run, incident, decision.hook, state, verdict["diagnosis"]
                    )
                    self._running[key] = self._run(incident, decision.hook, told)
                else:
                    self._note_end(incident, decision.hook, None, _NOT_KEPT)

    def note_outcomes(self) -> None:
        """Journal which hooks have ended, and how."""
        for key, running in list(self._running.items()):
            if running.outcome is not None:
                del self._running[key]
                self._note_end(*key, *running.outcome)

    @property
    def is_idle(self) -> bool:
        """Whether no hook is running."""
        return not self._running

    def planned(self, verdict: Mapping[str, Any], state: RunState) -> Iterator[str]:
        """What the hooks do about a verdict entry, for the message about it."""
        dry_run = self._config.respond.dry_run
        for decision in decide(self._config.respond, verdict["diagnosis"], state, float(verdict["t"])):
            yield in_words(decision, dry_run=dry_run)

    def _run(self, incident: str, hook: Hook, told: Mapping[str, Any]) -> HookRun:
        log = self._run_dir.ledger / "hooks" / f"{incident}-{hook}.log"
        return HookRun(command_of(self._config, hook), told, log, self._config.respond.hook_wait_s)

    def _done(self, incident: str) -> Done:
        return _done(incident, self._begun, self._codes)

    def _has_noted(self, incident: str, verdict_t: object, decision: Decision) -> bool:
        """Whether the decision is on the disk: what is not could be done once more by the next keeper."""
        command = command_of(self._config, decision.hook)
        return self._book.has_recorded(
            "hook_decided",
            incident=incident,
            hook=decision.hook,
            does=decision.does,
            why=decision.why,
            dry_run=self._config.respond.dry_run,
            verdict_t=verdict_t,
            command=Path(command[0]).name,  # what stands behind it may be a secret
        )

    def _note_end(self, incident: str, hook: str, exit_code: int | None, said: str) -> None:
        self._codes[(incident, hook)] = exit_code
        self._book.record("hook_done", incident=incident, hook=hook, exit_code=exit_code, said=said)


def _recalled(
    entries: Iterable[Mapping[str, Any]],
) -> tuple[set[_Key], dict[_Key, int | None], dict[_Key, tuple[object, str, str]]]:
    begun: set[_Key] = set()
    codes: dict[_Key, int | None] = {}
    said: dict[_Key, tuple[object, str, str]] = {}
    for entry in entries:
        key = (str(entry.get("incident")), str(entry.get("hook")))
        if entry.get("kind") == "hook_decided":
            if entry.get("does") == "act" and not entry.get("dry_run"):
                begun.add(key)
            said[key] = (entry.get("verdict_t"), str(entry.get("does")), str(entry.get("why")))
        elif entry.get("kind") == "hook_done":
            code = entry.get("exit_code")
            codes[key] = code if isinstance(code, int) else None
    return begun, codes, said


def _done(incident: str, begun: Iterable[_Key], codes: Mapping[_Key, int | None]) -> Done:
    return Done(
        frozenset(hook for it, hook in begun if it == incident),
        {hook: code for (it, hook), code in codes.items() if it == incident},
    )


def done_about(incident: str, entries: Iterable[Mapping[str, Any]]) -> Done:
    """What hooks have done about an incident, by the journal's entries."""
    begun, codes, _ = _recalled(entries)
    return _done(incident, begun, codes)


def command_of(config: Config, hook: Hook) -> tuple[str, ...]:
    """The words of a hook's command, () where it has none."""
    commands = {"exclude": config.respond.exclude_command, "restart": config.respond.restart_command}
    return commands[hook]


def told_to_hook(
    run_dir: RunDir, run: str, incident: str | None, hook: Hook, state: RunState, diagnosis: Mapping[str, Any]
) -> dict[str, Any]:
    """What a hook reads from its standard input, as one JSON object."""
    return {
        "schema": 1,
        "hook": hook,
        "run": run,
        "run_path": str(run_dir.path.resolve()),
        "incident": incident,
        "state": state.state,
        "attempt": state.attempt,
        "step": state.step,
        **{key: diagnosis.get(key) for key in ("cause", "confidence", "ranks", "hosts", "gpus")},
        "diagnosis": dict(diagnosis),
    }


def standing_words(config: Config) -> Iterator[str]:
    """What whoever starts a keeper is told about its hooks."""
    respond = config.respond
    for hook in HOOKS:
        command = command_of(config, hook)
        if command and not respond.on_page:
            yield f"{hook}_command is never run: it needs the verdict, and [respond] on_page is off"
        elif command:
            does = (
                "only told of ([respond] dry_run)" if respond.dry_run else "run where the verdict is certain"
            )
            yield f"{hook}_command, {shlex.join(command)}, is {does}"
