"""Which alerts were there, from when to when, and who was told?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from train_ledger.config import Alerts
from train_ledger.dash.incident import Incidents
from train_ledger.dash.judge import Key, Transition
from train_ledger.dash.rule import Level

__all__ = ["AlertHistory", "PastAlert"]


@dataclass(frozen=True, slots=True)
class PastAlert:
    """An alert as it was: fired at `fired_t`, over at `resolved_t` (None: it still fired at the end).

    `inhibited` says that it was when it fired. `notified_t` is when the message went out that named it first;
    None where none did: it is of level record, or was inhibited as long as it lasted, or came back in an
    incident that had named it before. `known_t` is when people knew of it, in that last case as it fired.

    The first message of an incident waits, and `notified_t` is at the end of that: through Prometheus
    Alertmanager's `group_wait_s`; embedded, the keeper's first answers, which may take `page_waits_s` and are
    taken to do so (what they found is not known here, so that a real page comes as late at most). How long
    it takes from there to the pager's screen is not in it.
    """

    name: str
    level: Level
    labels: Mapping[str, str]
    fired_t: float
    summary: str
    resolved_t: float | None = None
    inhibited: bool = False
    notified_t: float | None = None
    known_t: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "level": self.level,
            "labels": dict(self.labels),
            "fired_t": self.fired_t,
            "resolved_t": self.resolved_t,
            "inhibited": self.inhibited,
            "notified_t": self.notified_t,
            "summary": self.summary,
        }


class AlertHistory:
    """Takes the transitions of one evaluation after the other and keeps what became of each alert.

    The first message of an incident goes out `waits_s` after it opened, with what joined it until then.
    """

    def __init__(self, alerts: Alerts, waits_s: float = 0.0) -> None:
        self._waits_s = waits_s
        self._incidents = Incidents(alerts)
        self._all: list[PastAlert] = []
        self._last: dict[Key, int] = {}

    @property
    def alerts(self) -> tuple[PastAlert, ...]:
        """Every alert there was, in the order in which they fired."""
        return tuple(self._all)

    def take(self, transitions: Iterable[Transition], t: float) -> None:
        """What the judge found at `t`; call it at every evaluation, also with nothing."""
        transitions = list(transitions)
        for transition in transitions:
            self._note(transition)
        for action in self._incidents.apply(transitions, t):
            waits_s = self._waits_s if action.kind == "open" else 0.0
            for alert in action.alerts if action.kind != "repeat" else ():
                self._tell(alert.key, t + waits_s)
        self._note_joined(transitions)
        self._note_returned(transitions)

    def _note_joined(self, transitions: Iterable[Transition]) -> None:
        """What joins an incident while its first message waits stands in that."""
        for incident in self._incidents.open if transitions else ():
            sent_t = incident.opened_t + self._waits_s
            untold = {one.key for one in incident.untold}
            for it in transitions:
                if it.kind == "fired" and it.alert.key in untold and it.t < sent_t:
                    self._tell(it.alert.key, sent_t)

    def _tell(self, key: Key, t: float) -> None:
        """A message goes out that names it, unless it stood in an earlier one."""
        if self._all[self._last[key]].notified_t is None:
            self._change(key, notified_t=t, known_t=t)

    def _note(self, transition: Transition) -> None:
        alert = transition.alert
        place = self._last.get(alert.key)
        if transition.kind == "resolved":
            self._change(alert.key, resolved_t=transition.t)
        elif place is None or self._all[place].resolved_t is not None:
            self._last[alert.key] = len(self._all)
            past = PastAlert(
                alert.name,
                alert.level,
                alert.labels,
                transition.t,
                alert.summary,
                inhibited=alert.inhibited,
            )
            self._all.append(past)

    def _change(self, key: Key, **changes: Any) -> None:
        if (place := self._last.get(key)) is not None:
            self._all[place] = replace(self._all[place], **changes)

    def _note_returned(self, transitions: Iterable[Transition]) -> None:
        """An alert that comes back while its incident is open is not told again: people know."""
        fired = [it.alert.key for it in transitions if it.kind == "fired"]
        if not fired:
            return
        members = (member for incident in self._incidents.open for member in incident.members)
        told = {member.alert.key for member in members if member.told}
        for key in fired:
            past = self._all[self._last[key]]
            if key in told and past.known_t is None:
                self._change(key, known_t=past.fired_t)
