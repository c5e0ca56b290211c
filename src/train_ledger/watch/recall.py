"""What had the keeper done before it was killed?

Everything that must not be done twice is read back from the journal: which alerts were open, which incidents,
which of them had their verdict, which messages were handed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from train_ledger.config import Alerts
from train_ledger.dash import Alert, Incident, Incidents, Transition
from train_ledger.watch.digest import Digest

__all__ = ["Place", "Recall", "as_place", "recall"]

Place = tuple[int, int | None]
"""(attempt, step) at which a run stands still."""


@dataclass(frozen=True, slots=True)
class Recall:
    """What the journal says.

    `recovered` is the (attempt, lap) of the last recovery that was noted.
    `answered` has the places of each incident's verdicts, None for one on a run that goes on; `unknown`
    counts entries of a known kind that could not be understood; `digest` holds the records that no digest has
    told.
    """

    incidents: Incidents
    open_alerts: tuple[Alert, ...] = ()
    answered: Mapping[str, frozenset[Place | None]] = field(default_factory=dict)
    intended: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    verdict: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None
    recovered: tuple[int, int] | None = None
    unknown: int = 0
    digest: Digest = field(default_factory=Digest)


def recall(entries: Iterable[Mapping[str, Any]], alerts: Alerts) -> Recall:
    """Fold the journal's entries, oldest first."""
    incidents = Incidents(alerts)
    digest = Digest()
    open_alerts: dict[Any, Alert] = {}
    answered: dict[str, frozenset[Place | None]] = {}
    seen: dict[str, set[str]] = {"notification_intended": set(), "notification_done": set()}
    verdict: Mapping[str, Any] = {}
    state: str | None = None
    recovered: tuple[int, int] | None = None
    unknown = 0
    for entry in entries:
        kind = str(entry.get("kind"))
        try:
            _replay(kind, entry, incidents, open_alerts, digest)
        except (KeyError, TypeError, ValueError):
            unknown += 1
        if kind in seen:
            seen[kind].add(str(entry.get("notification")))
            digest.told(str(entry.get("notification")))
        if kind == "verdict":
            verdict, incident = entry, str(entry.get("incident"))
            answered[incident] = answered.get(incident, frozenset()) | {as_place(entry.get("place"))}
        if kind == "state_changed":
            state = str(entry.get("state"))
        if kind == "recovered":
            recovered = _lap(entry.get("recovery"))
    return Recall(
        incidents,
        tuple(open_alerts.values()),
        answered,
        frozenset(seen["notification_intended"]),
        frozenset(seen["notification_done"]),
        verdict,
        state,
        recovered,
        unknown,
        digest,
    )


def _replay(
    kind: str,
    entry: Mapping[str, Any],
    incidents: Incidents,
    open_alerts: dict[Any, Alert],
    digest: Digest,
) -> None:
    if kind in ("alert_fired", "alert_resolved"):
        transition = Transition.from_json(entry["transition"])
        incidents.replay(transition)
        digest.take(transition)
        if transition.kind == "fired":
            open_alerts[transition.alert.key] = transition.alert
        else:
            open_alerts.pop(transition.alert.key, None)
    elif kind in ("incident_opened", "incident_updated", "incident_closed"):
        incidents.replay(Incident.from_json(entry["record"]))


def as_place(value: object) -> Place | None:
    """The place that stands in an entry, None where none does."""
    match value:
        case [int() as attempt, (int() | None) as step]:
            return attempt, step
    return None


def _lap(recovery: object) -> tuple[int, int] | None:
    if not isinstance(recovery, Mapping):
        return None
    attempt, lap = recovery.get("attempt"), recovery.get("lap")
    return (attempt, lap) if isinstance(attempt, int) and isinstance(lap, int) else None
