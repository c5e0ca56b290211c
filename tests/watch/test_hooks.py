"""Each hook of an incident acts once, and everything about it is in the journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from train_ledger.config import Config, Respond
from train_ledger.ledger import JournalError, RunState
from train_ledger.ledger.journal import Journal
from train_ledger.run_dir import RunDir
from train_ledger.watch.book import Book
from train_ledger.watch.console import Console
from train_ledger.watch.hooks import Hooks, standing_words
from waiting import wait_until

T = 1_764_000_000.0
DIAGNOSIS = {"cause": "hardware.xid", "confidence": "high", "hosts": ["node037"], "ranks": [293]}
VERDICT = {"t": T, "kind": "verdict", "incident": "i1", "place": [0, 51300], "diagnosis": DIAGNOSIS}
STALLED = RunState("r42", T + 5, state="stalled", step=51300)


class Kept:
    """The hooks of one keeper after another in the same run."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.run_dir = RunDir(folder)
        self.told = folder / "told.jsonl"
        command = ("sh", "-c", f"cat >> '{self.told}'; echo >> '{self.told}'; echo done")
        commands = {"exclude_command": command, "restart_command": command, "dry_run": False, **settings}
        self.config = Config(respond=Respond(on_page=("diagnose",), **commands))
        self.said: list[str] = []
        self.start()

    def start(self) -> None:
        self.book = Book(self.run_dir, Console(self.said.append), lambda: T)
        self.hooks = Hooks(self.run_dir, self.config, self.book, self.book.before)

    def attend(self, verdict: Mapping[str, Any] = VERDICT, state: RunState = STALLED) -> None:
        self.hooks.attend("i1", verdict, state, "r42")

    def attend_until(self, done: Callable[[], bool]) -> None:
        def attended() -> bool:
            if not done():
                self.attend()
                self.hooks.note_outcomes()
            return done()

        wait_until(attended, 60.0)

    def entries(self, kind: str) -> list[Mapping[str, Any]]:
        return [entry for entry in self.book.tail if entry["kind"] == kind]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_the_node_is_left_out_and_then_the_run_restarted(kept: Kept) -> None:
    kept.attend_until(lambda: len(kept.entries("hook_done")) == 2)
    told = [json.loads(line) for line in kept.told.read_text().split("\n") if line]
    assert [it["hook"] for it in told] == ["exclude", "restart"]
    assert told[0]["hosts"] == ["node037"]
    assert told[0]["diagnosis"] == DIAGNOSIS
    assert told[0]["run_path"] == str(kept.run_dir.path)
    decided = [(it["hook"], it["does"]) for it in kept.entries("hook_decided")]
    assert decided == [("exclude", "act"), ("restart", "wait"), ("restart", "act")]
    ended = [(it["hook"], it["exit_code"], it["said"]) for it in kept.entries("hook_done")]
    assert ended == [("exclude", 0, "done"), ("restart", 0, "done")]
    kept.attend()
    assert kept.hooks.is_idle


def test_another_keeper_does_nothing_twice(kept: Kept) -> None:
    kept.attend_until(lambda: len(kept.entries("hook_done")) == 2)
    kept.start()
    kept.attend()
    kept.attend({**VERDICT, "t": T + 100})
    assert kept.hooks.is_idle
    assert kept.told.read_text().count('"hook"') == 2


def test_one_that_a_killed_keeper_began_is_not_begun_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path, exclude_command=("sleep", "1"), restart_command=())
    kept.attend()
    kept.start()
    assert [it["exit_code"] for it in kept.entries("hook_done")] == [None]
    kept.attend()
    assert len(kept.entries("hook_decided")) == 1


def test_what_cannot_be_written_down_is_not_run(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keeper after this one would not know of it, and leave the node out once more."""

    def full(journal: Journal, entry: Mapping[str, Any]) -> None:
        raise JournalError("journal.jsonl: No space left on device")

    monkeypatch.setattr(Journal, "append", full)
    kept.attend()
    assert kept.hooks.is_idle
    assert not kept.told.exists()
    said = next(it["said"] for it in kept.entries("hook_done") if it["hook"] == "exclude")
    assert said.startswith("it was not run")
    monkeypatch.undo()
    kept.attend()
    assert not kept.told.exists(), "not on this verdict any more: a person reads what was said of it"


def test_a_dry_run_is_told_once_and_runs_nothing(tmp_path: Path) -> None:
    kept = Kept(tmp_path, dry_run=True)
    kept.attend()
    kept.attend()
    kept.start()
    kept.attend()
    assert [(it["hook"], it["does"]) for it in kept.entries("hook_decided")] == [
        ("exclude", "act"),
        ("restart", "act"),
    ]
    assert kept.said[0].endswith(
        "exclude_command would be run now, but for dry_run: hardware.xid on node037, confidence high"
    )
    assert not kept.told.exists()
    assert kept.entries("hook_decided")[0]["command"] == "sh"  # without its words: they may hold a secret


def test_a_new_verdict_is_decided_on_anew(kept: Kept) -> None:
    unsure = {**VERDICT, "t": T - 60, "diagnosis": {**DIAGNOSIS, "confidence": "low"}}
    kept.attend(unsure)
    kept.attend(unsure)
    assert {it["does"] for it in kept.entries("hook_decided")} == {"withheld"}
    kept.attend_until(lambda: len(kept.entries("hook_done")) == 2)


def test_who_starts_a_keeper_is_told_what_its_hooks_do(tmp_path: Path) -> None:
    assert list(standing_words(Config())) == []
    off = Config(respond=Respond(exclude_command=("x", "a b")))
    assert "is never run: it needs the verdict, and [respond] on_page is off" in next(standing_words(off))
    dry = Config(respond=Respond(on_page=("diagnose",), exclude_command=("x", "a b")))
    assert next(standing_words(dry)) == "exclude_command, x 'a b', is only told of ([respond] dry_run)"
