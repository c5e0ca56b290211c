"""Which entries of the journal are of one incident, and what of them is understood?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from train_ledger.answer import Diagnosis
from train_ledger.ledger import journal
from train_ledger.ops.journal_values import Taker, moment
from train_ledger.run_dir import RunDir, RunDirError

__all__ = [
    "Entry",
    "Happened",
    "Incident",
    "Matter",
    "all_incidents",
    "incident_of",
    "latest_incident",
]

Entry = Mapping[str, Any]
_Numbered = tuple[int, Entry]
_OF_THE_RUN = ("state_changed", "recovered")
_MOST_NAMED = 5
_SHOWN = 120
_STANDS = ("stalled", "escalated")
_NOTHING = ("none", "unknown")


@dataclass(frozen=True, slots=True)
class Happened:
    """One entry of the incident, as far as it is understood; `line` is that of the journal."""

    kind: str
    t: float | None
    entry: Entry
    line: int
    verdict: Diagnosis | None = None


@dataclass(frozen=True, slots=True)
class Matter:
    """What was found of the run at one place, where it stood or, at no place, while it went on.

    The last verdict is taken: what was found while it was looked at again is nearest the truth.
    """

    verdict: Diagnosis
    line: int
    has_place: bool


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident and what was journalled from its first entry to its last, or until now.

    `left_out` counts lines that could not be read, `not_understood` values that made no sense. `found_later`
    is a verdict that nobody asked for at the time, as known at `found_at`.
    """

    id: str
    happened: tuple[Happened, ...]
    is_closed: bool
    left_out: int = 0
    not_understood: int = 0
    found_later: Diagnosis | None = None
    found_at: float | None = None

    @property
    def matters(self) -> tuple[Matter, ...]:
        """One for each place of which there is a verdict, in the order of the first of each."""
        found: dict[str, Matter] = {}
        for it in self.happened:
            if it.verdict is not None:
                place = it.entry.get("place")
                found[str(place)] = Matter(it.verdict, it.line, place is not None)
        return tuple(found.values())

    @property
    def verdict(self) -> Diagnosis | None:
        """Of the first matter of which the cause is known; where it is of none, of the last."""
        return self._told.verdict if self._told else self.found_later

    @property
    def verdict_line(self) -> int | None:
        """The line of the journal in which it stands."""
        return self._told.line if self._told else None

    @property
    def _told(self) -> Matter | None:
        known = (it for it in self.matters if it.verdict.cause not in _NOTHING)
        return next(known, self.matters[-1] if self.matters else None)

    @property
    def began_with(self) -> Diagnosis | None:
        """Of the first place at which it stood: since when and at which step the incident began."""
        stood = (it.verdict for it in self.matters if it.has_place)
        return next(stood, self.verdict)

    @property
    def others(self) -> tuple[Diagnosis, ...]:
        """What was found besides at other places, where it is another cause or of other ranks."""
        named = {(it.cause, it.ranks) for it in (self.verdict,) if it is not None}
        found: list[Diagnosis] = []
        for it in self.matters:
            if it.verdict.cause not in _NOTHING and (it.verdict.cause, it.verdict.ranks) not in named:
                named.add((it.verdict.cause, it.verdict.ranks))
                found.append(it.verdict)
        return tuple(found)

    @property
    def opened_t(self) -> float | None:
        return self.happened[0].t

    @property
    def last_t(self) -> float | None:
        return max((it.t for it in self.happened if it.t is not None), default=None)

    @property
    def alerts(self) -> tuple[str, ...]:
        """The names of the alerts that fired, each once, in the order of time."""
        names = (it.entry.get("alert") for it in self.happened if it.kind == "alert_fired")
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))

    def first(self, kind: str, since_t: float | None = None) -> Happened | None:
        """The first entry of a kind, from `since_t` on."""
        of_kind = (it for it in self.happened if it.kind == kind and it.t is not None)
        return next((it for it in of_kind if since_t is None or (it.t or 0.0) >= since_t), None)

    def went_on_t(self, since_t: float | None) -> float | None:
        """When steps came again by themselves: without a restart between `since_t` and then."""
        moved = (it for it in self.happened if it.kind == "state_changed" and it.t is not None)
        after = next((it for it in moved if since_t is not None and (it.t or 0.0) > since_t), None)
        while after is not None and after.entry.get("state") in _STANDS:
            after = next(moved, None)
        is_running = after is not None and after.entry.get("state") == "running"
        return after.t if after is not None and is_running and after.entry.get("before") in _STANDS else None


def incident_of(run_dir: RunDir, name: str | None = None) -> Incident:
    """The incident of that name (None: the latest).

    Raises RunDirError where the journal holds no incident, or none of that name, and JournalError where it
    cannot be read.
    """
    entries, unreadable = journal.numbered(run_dir.journal)
    known = _incidents(entries)
    if not known:
        raise RunDirError(f"{run_dir.journal}: holds no incident; a postmortem is written about one")
    chosen = _latest(entries) if name is None else name
    if chosen not in known:
        raise RunDirError(f"{run_dir.journal}: holds no incident {chosen[:_SHOWN]}; there {_in_words(known)}")
    nameless = sum(entry.get("incident") is not None and _name(entry) is None for _, entry in entries)
    own = [number for number, (_, entry) in enumerate(entries) if _name(entry) == chosen]
    return _incident(entries, chosen, own, len(unreadable) + nameless)


def all_incidents(run_dir: RunDir) -> list[Incident]:
    """Every incident of the journal, oldest first; raises JournalError where it cannot be read."""
    entries = journal.numbered(run_dir.journal).entries
    own: dict[str, list[int]] = {}
    for number, (_, entry) in enumerate(entries):
        if (name := _name(entry)) is not None:
            own.setdefault(name, []).append(number)
    return [_incident(entries, name, own[name], 0) for name in _incidents(entries)]


def _incident(entries: Sequence[_Numbered], name: str, own: Sequence[int], left_out: int) -> Incident:
    """`own` are the places of the entries that name it."""
    taker = Taker()
    is_closed = any(entries[number][1].get("kind") == "incident_closed" for number in own)
    end = own[-1] if is_closed else len(entries) - 1
    happened = tuple(_happened(it, taker) for it in _between(entries, own[0], end, name))
    return Incident(name, happened, is_closed, left_out, taker.left_out)


def latest_incident(run_dir: RunDir) -> str | None:
    """The incident that was opened last; None where there was none."""
    entries = journal.numbered(run_dir.journal).entries
    return _latest(entries) if _incidents(entries) else None


def _latest(entries: Iterable[_Numbered]) -> str:
    """The last that was opened at some time; a line that says none hides no incident that does."""
    listed = list(entries)
    dated = _incidents((line, entry) for line, entry in listed if moment(entry.get("t")) is not None)
    return (dated or _incidents(listed))[-1]


def _in_words(known: Sequence[str]) -> str:
    """The newest ones by name."""
    newest = [name[:_SHOWN] for name in known[-_MOST_NAMED:]]
    if len(known) > len(newest):
        return f"are {len(known)}, the newest of them {', '.join(newest)}"
    return f"{'is' if len(known) == 1 else 'are'} {', '.join(newest)}"


def _between(entries: Sequence[_Numbered], start: int, end: int, incident: str) -> Iterable[_Numbered]:
    """The incident's own entries, and what the run did meanwhile."""
    for line, entry in entries[start : end + 1]:
        if _name(entry) == incident or entry.get("kind") in _OF_THE_RUN:
            yield line, entry


def _incidents(entries: Iterable[_Numbered]) -> list[str]:
    opened = (_name(entry) for _, entry in entries if entry.get("kind") == "incident_opened")
    return list(dict.fromkeys(incident for incident in opened if incident is not None))


def _name(entry: Entry) -> str | None:
    incident = entry.get("incident")
    return str(incident) if isinstance(incident, str) or type(incident) is int else None


def _happened(numbered: _Numbered, taker: Taker) -> Happened:
    line, entry = numbered
    kind = str(entry.get("kind"))
    verdict = taker.diagnosis(entry) if kind == "verdict" else None
    return Happened(kind, taker.moment(entry), entry, line, verdict)
