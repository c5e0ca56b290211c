"""Which incidents did a run have, by what somebody wrote down of them?

A file of JSON lines, one an incident: `{"run": "r42", "t": 1796007600, "kind": "hang", "until": 1796009000}`.
`run` is the run's name or that of its folder; `t`, when it began, and `until`, when it was over, are unix
seconds or ISO 8601 with a zone. `kind` says what it was in a word, and `until` may be missing: a page within
an hour counts then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from train_ledger.fields import read_number
from train_ledger.render import harmless
from train_ledger.run_dir import parsed_json, read_small

__all__ = ["IncidentsError", "PastIncident", "incidents_in"]

_LASTS_S = 3600.0
_LATEST_T = 1e11
_KEYS = ("run", "t", "kind", "until")
_LARGEST_BYTES = 64 << 20


class IncidentsError(Exception):
    """A file of incidents cannot be used; the text says which line and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class PastIncident:
    """Something happened at `t` that somebody has to be woken for, and was over at `until_t`.

    `kind` is one of `KINDS`, which says by which alerts it is found; of another kind it is found by any page.
    `place` are labels that a page must not contradict: whose names another host or GPU is not about it.
    `clear` says that not to be told of it is a fault; else it was at the edge of a threshold, where neither a
    page nor its absence is one.
    """

    t: float
    kind: str
    until_t: float
    place: Mapping[str, str] = field(default_factory=dict)
    clear: bool = True

    @property
    def key(self) -> tuple[float, str, tuple[tuple[str, str], ...]]:
        """Which one it is: when, of what kind, and where."""
        return self.t, self.kind, tuple(sorted(self.place.items()))


def incidents_in(path: Path) -> Mapping[str, tuple[PastIncident, ...]]:
    """The incidents of each run that the file names.

    Raises IncidentsError for a line that is none, and OSError where the file cannot be read.
    """
    found: dict[str, list[PastIncident]] = {}
    for number, line in enumerate(read_small(path, limit_bytes=_LARGEST_BYTES).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            run, incident = _incident(parsed_json(line))
        except ValueError as error:
            raise IncidentsError(f"{path}:{number}: {error}") from None
        found.setdefault(run, []).append(incident)
    return {run: tuple(sorted(its, key=lambda it: it.t)) for run, its in found.items()}


def _incident(line: Any) -> tuple[str, PastIncident]:
    if not isinstance(line, dict):
        raise ValueError('wanted is one JSON object a line, like {"run": "r42", "t": 1796007600}')
    unknown = _in_words(line.keys() - set(_KEYS))
    if unknown:
        raise ValueError(f"unknown key {unknown}; known are {', '.join(_KEYS)}")
    run, kind = line.get("run"), line.get("kind", "incident")
    if not isinstance(run, str) or not run:
        raise ValueError('"run" is missing: the name of the run, or of its folder')
    if not isinstance(kind, str):
        raise ValueError('"kind" must be a word')
    t = _moment(line.get("t"), "t")
    until_t = t + _LASTS_S if line.get("until") is None else _moment(line["until"], "until")
    if until_t < t:
        raise ValueError('"until" lies before "t"')
    return run, PastIncident(t, harmless(kind, longest=60), until_t)


def _in_words(keys: Collection[str]) -> str:
    return ", ".join(harmless(key, longest=40) for key in sorted(keys)[:4])


def _moment(value: object, key: str) -> float:
    number = None if isinstance(value, str | bool) else read_number(value)
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value)
        except ValueError:
            told = None
        number = told.timestamp() if told is not None and told.tzinfo is not None else None
    if number is None or not 0 <= number < _LATEST_T:
        raise ValueError(f'"{key}" must be unix seconds, or ISO 8601 with a zone')
    return number
