"""Which rank ran where, in which attempt?

Gathered from the ranks' own run_start events into ranks.jsonl, so that a thousand ranks need not append to
one file. What somebody else put there – rack, switch port – is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from train_ledger.facts import Event, Fact
from train_ledger.run_dir import RunDir, parsed_json, read_small, write_atomically

__all__ = ["Roster"]

_KEYS = ("local_rank", "gpu", "uuid", "pci", "pid")


class Roster:
    """The lines of ranks.jsonl, one a rank and attempt; written when something is new."""

    def __init__(self, run_dir: RunDir) -> None:
        self._path = run_dir.ranks_jsonl
        self._lines: dict[tuple[int, int], dict[str, Any]] = {}
        self._foreign: list[str] = []
        self._changed = False
        self._refused: OSError | None = None
        for line in self._read():
            self._recall(line)

    def _read(self) -> list[str]:
        try:
            return read_small(self._path).decode(errors="replace").split("\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            self._refused = error
            return []

    def _recall(self, line: str) -> None:
        if not line:
            return
        try:
            entry = parsed_json(line)
            key = (int(entry.get("attempt") or 0), int(entry["rank"]))
            json.dumps(entry)  # what nests too deeply to be written again stays as it is
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            self._foreign.append(line)  # not ours to lose; sources.RunFiles counts it
        else:
            self._lines[key] = entry

    def take(self, facts: Iterable[Fact]) -> None:
        """Remember where the ranks of these run_start events run."""
        for fact in facts:
            if isinstance(fact, Event) and fact.name == "run_start" and fact.rank is not None:
                self._place(fact, fact.rank)

    def _place(self, event: Event, rank: int) -> None:
        found = {key: event.details[key] for key in _KEYS if event.details.get(key) is not None}
        own = {"t": event.t, "rank": rank, "host": event.host, **found, "attempt": event.attempt}
        key = (event.attempt, rank)
        merged = {**self._lines.get(key, {}), **own}
        if merged != self._lines.get(key):
            self._lines[key] = merged
            self._changed = True

    def write(self) -> None:
        """Replace ranks.jsonl where something is new.

        Raises OSError where it cannot be written, or is something that could not be read, once for each news.
        """
        if not self._changed:
            return
        if self._refused is not None:
            self._changed = False
            raise self._refused
        entries: Iterable[Mapping[str, Any]] = (self._lines[key] for key in sorted(self._lines))
        lines = [*self._foreign, *(json.dumps(entry) for entry in entries)]
        write_atomically(self._path, "".join(f"{line}\n" for line in lines).encode())
        self._changed = False
