"""Which alerts are one incident, and what is there to tell about it?

The first page of a run opens an incident and is told at once. Pages that join it are told together at the
next group interval, never as a page of their own; so do those that come back after they had been over for
that long: an incident may stay open for days, and nobody would hear of what happens in it. One that is still
open when nothing was told of it for the repeat interval is told again. It is closed when all its alerts are
resolved, which is told once. Pure data: what is returned is for the keeper to journal and to send; from the
journalled entries the same incidents are made again.

There is no group wait: all rules are judged at the same moment, so that pages which begin together stand in
the same first message anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from train_ledger.config import Alerts
from train_ledger.dash.judge import Alert, Transition
from train_ledger.dash.written import moment, text, whole

__all__ = ["Action", "Incident", "Incidents", "Member"]


@dataclass(frozen=True, slots=True)
class Member:
    """An alert of an incident; `told` says whether a message about it went out."""

    alert: Alert
    resolved_t: float | None = None
    told: bool = False


@dataclass(frozen=True, slots=True)
class Incident:
    """Alerts of one run that belong together, in the order in which they fired.

    `id` is made of the first alert: `20261130T031205Z-TrainingStepStalled`. `told_t` is when the last
    message went out, None before the first; `repeats` how many of them told only that it is still open, and
    `returns` how often an alert came back that had been told and was over.
    """

    id: str
    run: str
    opened_t: float
    members: tuple[Member, ...]
    told_t: float | None = None
    closed_t: float | None = None
    repeats: int = 0
    returns: int = 0

    @property
    def still_open(self) -> tuple[Alert, ...]:
        """The alerts that have not been resolved."""
        return tuple(member.alert for member in self.members if member.resolved_t is None)

    @property
    def untold(self) -> tuple[Alert, ...]:
        """The alerts that no message has named yet."""
        return tuple(member.alert for member in self.members if not member.told)

    def to_json(self) -> dict[str, Any]:
        members = [{**asdict(member), "alert": member.alert.to_json()} for member in self.members]
        return {**asdict(self), "members": members}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Incident:
        """The incident that `to_json` wrote; raises KeyError, TypeError or ValueError for anything else."""
        members = tuple(
            Member(Alert.from_json(member["alert"]), _moment(member["resolved_t"]), bool(member["told"]))
            for member in entry["members"]
        )
        return cls(
            id=text(entry["id"]),
            run=text(entry["run"]),
            opened_t=moment(entry["opened_t"]),
            members=members,
            told_t=_moment(entry["told_t"]),
            closed_t=_moment(entry["closed_t"]),
            repeats=whole(entry.get("repeats", 0)),
            returns=whole(entry.get("returns", 0)),
        )


@dataclass(frozen=True, slots=True)
class Action:
    """Something to tell about an incident.

    `alerts` are those that no message has named before; of a repeat, those that still fire.
    """

    kind: Literal["open", "update", "repeat", "close"]
    incident: Incident
    t: float
    alerts: tuple[Alert, ...] = ()

    @property
    def notification_id(self) -> str:
        """The same however often the same message is decided on, so that an outbox sends it once."""
        named = len(self.incident.members) + self.incident.returns
        numbers = {"update": f"-{named}", "repeat": f"-{self.incident.repeats}"}
        return f"{self.incident.id}-{self.kind}{numbers.get(self.kind, '')}"


@dataclass(slots=True)
class Incidents:
    """The open incident of each run."""

    alerts: Alerts = field(default_factory=Alerts)
    _open: dict[str, Incident] = field(default_factory=dict)

    @property
    def open(self) -> tuple[Incident, ...]:
        return tuple(self._open.values())

    def apply(self, transitions: Iterable[Transition], t: float) -> list[Action]:
        """What is to be told at `t`, after these transitions. Call it at every evaluation, also with none."""
        for transition in transitions:
            self.replay(transition)
        decided = [self._decide(incident, t) for incident in self.open]
        actions = [action for action in decided if action is not None]
        for action in actions:
            self.replay(action.incident)
        return actions

    def replay(self, entry: Transition | Incident) -> None:
        """Take over what was journalled, in its order, and tell nothing.

        A transition is what the judge found; an incident is as `apply` returned it in an action.
        """
        if isinstance(entry, Incident):
            self._keep(entry)
        elif entry.alert.level == "page" and not entry.alert.inhibited:
            self._take(entry)

    def _keep(self, incident: Incident) -> None:
        if incident.closed_t is None:
            self._open[incident.run] = incident
        else:
            self._open.pop(incident.run, None)

    def _take(self, transition: Transition) -> None:
        alert = transition.alert
        run = alert.labels.get("run", "")
        incident = self._open.get(run)
        if transition.kind == "fired":
            incident = incident or Incident(_incident_id(alert, transition.t), run, transition.t, ())
            self._keep(_with(incident, transition, self.alerts.group_interval_s))
        elif incident is not None:
            members = tuple(
                replace(member, resolved_t=transition.t) if member.alert.key == alert.key else member
                for member in incident.members
            )
            self._keep(replace(incident, members=members))

    def _decide(self, incident: Incident, t: float) -> Action | None:
        told = replace(
            incident, told_t=t, members=tuple(replace(member, told=True) for member in incident.members)
        )
        if incident.told_t is None:
            return Action("open", told, t, incident.untold)
        if not incident.still_open:
            return Action("close", replace(told, closed_t=t), t, incident.untold)
        if incident.untold and t - incident.told_t >= self.alerts.group_interval_s:
            return Action("update", told, t, incident.untold)
        if t - incident.told_t >= self._repeat_s:
            return Action("repeat", replace(told, repeats=incident.repeats + 1), t, incident.still_open)
        return None

    @property
    def _repeat_s(self) -> float:
        """As in Alertmanager nothing is told again within the group interval, whatever was configured."""
        return max(self.alerts.repeat_interval_s, self.alerts.group_interval_s)


def _moment(value: object) -> float | None:
    return None if value is None else moment(value)


def _incident_id(alert: Alert, t: float) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y%m%dT%H%M%SZ}-{alert.name}"


def _with(incident: Incident, fired: Transition, forgotten_s: float) -> Incident:
    """The incident with one alert more. One that comes back takes its own place.

    It is told twice only where it was over for as long as it takes until its end has been told elsewhere
    (Alertmanager's group interval).
    """
    member, members = Member(fired.alert), incident.members
    for number, earlier in enumerate(members):
        if earlier.alert.key != member.alert.key:
            continue
        over_s = 0.0 if earlier.resolved_t is None else fired.t - earlier.resolved_t
        news = earlier.told and over_s >= forgotten_s
        member = replace(member, told=earlier.told and not news)
        members = (*members[:number], member, *members[number + 1 :])
        return replace(incident, members=members, returns=incident.returns + news)
    return replace(incident, members=(*members, member))
