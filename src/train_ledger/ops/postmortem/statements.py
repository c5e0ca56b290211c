"""In which words do facts stand in a timeline?

Of what many ranks tell alike one line is made, by the first of them, or by the last where that one ends it –
a start, a load, a dump – and it says how many they were. What comes a minute later is another line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from train_ledger.config import Xid
from train_ledger.facts import Event, Fact, Fault
from train_ledger.ledger import Dated, xid
from train_ledger.ledger.xids import level_here
from train_ledger.ops.postmortem.moment import Moment
from train_ledger.ops.postmortem.places import Key, key_of, places_of
from train_ledger.run_dir import RunDir

__all__ = ["Statements"]

_SHORTEST_LEAD_S = 0.05
_APART_S = 60.0
_EVENTS = {
    "run_start": "started",
    "ckpt_loaded": "checkpoint loaded",
    "ckpt_failed": "checkpoint save failed",
    "exception": "exception",
    "signal": "signal",
    "restart": "the launcher starts the ranks once more",
    "process_end": "process ended",
    "dump_done": "Flight Recorder written",
    "dump_failed": "Flight Recorder could not be written",
}
_LAST_ENDS_IT = ("run_start", "ckpt_loaded", "dump_done")


@dataclass(frozen=True, slots=True)
class Statements:
    """Makes moments of a run's facts; `root` is its directory, `leads` how far each host's clock leads."""

    root: Path
    leads: Mapping[str | None, float]
    levels: Xid

    def told(self, facts: Iterable[Dated]) -> list[Moment]:
        """One moment for all that is told alike, in the order of the first of each."""
        alike = self._alike(facts)
        shown = [members[-1 if _last_ends_it(members[0].fact) else 0] for members in alike]
        keys = (key_of(it.fact) for it in shown if not it.fact.source)
        places = places_of(RunDir(self.root), (key for key in keys if key is not None))
        return [self._moment(it, members, places) for it, members in zip(shown, alike, strict=True)]

    def _alike(self, facts: Iterable[Dated]) -> list[list[Dated]]:
        found: list[list[Dated]] = []
        newest: dict[object, list[Dated]] = {}
        for it in sorted(facts, key=lambda it: it.t or 0.0):
            if (key := _kind(it.fact)) is None:
                continue
            members = newest.get(key)
            if members is None or _is_apart(members[-1], it):
                newest[key] = members = []
                found.append(members)
            members.append(it)
        return found

    def _moment(self, it: Dated, members: Sequence[Dated], places: Mapping[Key, str]) -> Moment:
        fact = it.fact
        code = _code(fact)
        return Moment(
            t=it.t,
            text=_text(fact, members),
            source=self._source(fact, places),
            clock=self._clock(fact.host),
            host=fact.host,
            rank=fact.rank,
            xid=code,
            pages=code is not None and level_here(code, overrides=self.levels) == "page",
        )

    def _source(self, fact: Fact, places: Mapping[Key, str]) -> str:
        if fact.source:
            return fact.source.removeprefix(f"{self.root}{os.sep}")
        key = key_of(fact)
        return places.get(key, f"signals/rank_{fact.rank:05d}.jsonl") if key is not None else ""

    def _clock(self, host: str | None) -> str:
        if host is None:
            return "clock of an unknown host"
        lead_s = self.leads.get(host)
        if lead_s is None:
            return f"clock of {host}, compared with no other"
        if abs(lead_s) < _SHORTEST_LEAD_S:
            return f"clock of {host}"
        return f"clock of {host}, {abs(lead_s):.1f} s {'ahead' if lead_s > 0 else 'behind'}, taken off"


def _is_apart(last: Dated, it: Dated) -> bool:
    """A GPU's lines of one code are told as one, and how many they are."""
    return _code(it.fact) is None and (it.t or 0.0) - (last.t or 0.0) > _APART_S


def _last_ends_it(fact: Fact) -> bool:
    return isinstance(fact, Event) and fact.name in _LAST_ENDS_IT


def _kind(fact: Fact) -> object:
    """What makes facts alike; None for those that are not told."""
    if isinstance(fact, Event):
        what = fact.details.get("type") or fact.details.get("number")
        return (fact.name, fact.attempt, what) if fact.name in _EVENTS else None
    if isinstance(fact, Fault):
        gpu = (fact.host, fact.details.get("pci")) if fact.fault == "xid" else None
        return fact.fault, fact.attempt, fact.details.get("code"), gpu
    return None


def _code(fact: Fact) -> int | None:
    code = fact.details.get("code") if isinstance(fact, Fault) and fact.fault == "xid" else None
    return code if type(code) is int else None


def _text(fact: Fact, members: Sequence[Dated]) -> str:
    who = _who(members)
    if isinstance(fact, Event):
        return f"{_EVENTS.get(fact.name, fact.name)}{who}{_of_event(fact)}"
    if (code := _code(fact)) is not None and isinstance(fact, Fault):
        pci = f", GPU {fact.details['pci']}" if fact.details.get("pci") else ""
        many = f", {len(members)} lines" if len(members) > 1 else ""
        return f"{fact.host or 'a host'}: the kernel reports XID {code} ({xid(code).meaning}{pci}){many}"
    name = fact.fault.replace("_", " ") if isinstance(fact, Fault) else ""
    return f"{name}{who}{_message(fact)}"


def _of_event(event: Event) -> str:
    if event.name == "signal":
        return f": number {event.details.get('number')} (attempt {event.attempt})"
    if event.name == "exception":
        return f": {event.details.get('type')}{_message(event)}"
    step = f", step {event.step}" if event.step is not None else ""
    return f" (attempt {event.attempt}{step})"


def _message(fact: Fact) -> str:
    said = next((fact.details[key] for key in _WORDS if fact.details.get(key)), None)  # type: ignore[union-attr]
    return "" if said is None else f": {said}"


_WORDS = ("message", "text", "exception", "op")


def _who(members: Sequence[Dated]) -> str:
    ranks = list(dict.fromkeys(it.fact.rank for it in members if it.fact.rank is not None))
    if not ranks:
        return f", {len(members)} times" if len(members) > 1 else ""
    if len(ranks) == 1:
        return f" on rank {ranks[0]}"
    of_last = _last_ends_it(members[0].fact)
    said = f"rank {members[-1].fact.rank} last" if of_last else f"rank {ranks[0]} first"
    return f" on {len(ranks)} ranks, {said}"
