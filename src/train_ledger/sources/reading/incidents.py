"""Which faults of a log are one trouble?

One hang is told by N ranks for M sequence numbers, one bug by every rank that ran into it: people want it
once, with whom it met, and where it was told first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from train_ledger.facts import Fault

__all__ = ["Incident", "Incidents"]

_NUMBERS = re.compile(r"0x[0-9a-fA-F]{1,16}|\d{1,20}")
_MOST = 1000
_MOST_NAMED = 100_000
_ONE_OF_ALL = frozenset({"nccl_error", "oom", "nan_suspected", "desync", "checkpoint_failed"})


@dataclass(slots=True)
class Incident:
    """Faults that are one; `first` is the first of them in the order in which the logs were read."""

    first: Fault
    times: int = 0
    ranks: set[int] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    steps: set[int] = field(default_factory=set)
    seqs: set[int] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def add(self, fault: Fault) -> None:
        self.times += 1
        seq = fault.details.get("seq")
        for found, named in (
            (fault.rank, self.ranks),
            (fault.step, self.steps),
            (seq if isinstance(seq, int) else None, self.seqs),
        ):
            if found is not None and len(named) < _MOST_NAMED:
                named.add(found)
        if fault.host is not None and len(self.hosts) < _MOST_NAMED:
            self.hosts.add(fault.host)
        if len(self.files) < _MOST_NAMED:
            self.files.add(_place(fault)[0])


class Incidents:
    """Gathers faults into incidents, by the order of their first lines; `left_out` counts the rest."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._found: dict[object, Incident] = {}
        self._files: dict[str, int] = {}
        self.left_out = 0
        for fault in faults:
            self.add(fault)

    def add(self, fault: Fault) -> None:
        self._files.setdefault(_place(fault)[0], len(self._files))
        key = _kind(fault)
        incident = self._found.get(key)
        if incident is None:
            if len(self._found) >= _MOST:
                self.left_out += 1
                return
            incident = self._found[key] = Incident(fault)
        incident.add(fault)

    @property
    def all(self) -> tuple[Incident, ...]:
        """As they stand in the logs; what is no cause comes last: a lost peer, an end by the launcher."""
        return tuple(sorted(self._found.values(), key=self._order))

    def _order(self, it: Incident) -> tuple[bool, bool, int, int]:
        file, line = _place(it.first)
        return _is_victim(it.first), it.first.details.get("what") == "peer_gone", self._files[file], line


def _place(fault: Fault) -> tuple[str, int]:
    file, _, line = fault.source.rpartition(":")
    return (file, int(line)) if line.isdecimal() and len(line) < 19 else (fault.source, 0)


def _is_victim(fault: Fault) -> bool:
    """Whether the launcher ended this rank because of another."""
    return fault.details.get("victim") is True


def _kind(fault: Fault) -> object:
    details = fault.details
    if fault.fault in _ONE_OF_ALL:
        return fault.fault, fault.attempt, details.get("what") == "peer_gone"
    if fault.fault == "watchdog_timeout":
        return fault.fault, fault.attempt, details.get("what") == "stuck"
    if fault.fault == "xid":
        fatal = " Fatal" in f" {details.get('text')}"
        return fault.fault, fault.host, details.get("pci"), details.get("code"), fatal
    said = details.get("message") or details.get("why") or details.get("text") or ""
    shape = _NUMBERS.sub("#", str(said)[:500])
    return fault.fault, fault.attempt, details.get("type"), shape, details.get("exit_code"), _is_victim(fault)
