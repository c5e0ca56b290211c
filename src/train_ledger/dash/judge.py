"""What began to fire since the last look, and what has ended?

The rules without a server: each state of a run is judged as Prometheus would judge the same series – `for`,
`keep_firing_for`, inhibition. Nothing here reads a clock; time is the state's own, so that a recorded run is
judged today as it was then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from train_ledger.config import Config
from train_ledger.dash.rule import Firing, Inhibition, Level, Rule
from train_ledger.dash.rules import INHIBITIONS, RULES
from train_ledger.dash.written import labels, moment, number, text
from train_ledger.ledger.state import RunState

__all__ = ["Alert", "Judge", "Transition"]

Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert that fired at `fired_t`; while `inhibited`, it notifies nobody.

    `gone_t` is since when its condition holds no more, while it is not resolved yet; None while it holds. It
    is for who looks at the moment, and is not written down.
    """

    name: str
    level: Level
    labels: Mapping[str, str]
    fired_t: float
    summary: str
    value: float
    inhibited: bool = False
    gone_t: float | None = None

    @property
    def key(self) -> Key:
        """What makes it the same alert at another time."""
        return self.name, tuple(sorted(self.labels.items()))

    def to_json(self) -> dict[str, Any]:
        written = {**asdict(self), "labels": dict(self.labels)}
        del written["gone_t"]
        return written

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Alert:
        """The alert that `to_json` wrote; raises KeyError, TypeError or ValueError for anything else."""
        return cls(
            name=text(entry["name"]),
            level=_level(entry["level"]),
            labels=labels(entry["labels"]),
            fired_t=moment(entry["fired_t"]),
            summary=text(entry["summary"]),
            value=number(entry["value"]),
            inhibited=bool(entry.get("inhibited", False)),
        )


def _level(value: object) -> Level:
    if value not in ("page", "record"):
        raise ValueError(f"{value!r} is no level")
    return value


@dataclass(frozen=True, slots=True)
class Transition:
    """An alert fired or was resolved at `t`.

    An alert that fired while it was inhibited comes with `alert.inhibited` set; when the inhibition ends and
    the alert still holds, it comes once more as fired, no longer inhibited: only then is it to be notified.
    """

    kind: Literal["fired", "resolved"]
    alert: Alert
    t: float

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "alert": self.alert.to_json(), "t": self.t}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Transition:
        """The transition that `to_json` wrote; raises KeyError, TypeError or ValueError for anything else."""
        return cls(entry["kind"], Alert.from_json(entry["alert"]), moment(entry["t"]))


@dataclass(slots=True)
class _Open:
    alert: Alert
    keep_s: float
    absent_since_t: float | None = None


@dataclass(slots=True)
class Judge:
    """Judges the states of one run, in the order of their times."""

    rules: tuple[Rule, ...] = RULES
    config: Config = field(default_factory=Config)
    inhibitions: tuple[Inhibition, ...] = INHIBITIONS
    _pending: dict[Key, float] = field(default_factory=dict)
    _open: dict[Key, _Open] = field(default_factory=dict)

    @property
    def open_alerts(self) -> tuple[Alert, ...]:
        """The alerts that fire now, oldest first; inhibited ones too."""
        # The page asks from a thread of its own, so the values are taken at one stroke.
        alerts = [replace(it.alert, gone_t=it.absent_since_t) for it in tuple(self._open.values())]
        return tuple(sorted(alerts, key=lambda alert: (alert.fired_t, alert.name)))

    def restore(self, alerts: Iterable[Alert]) -> None:
        """Take over alerts that an earlier judge had open; they are not fired again.

        One whose condition no longer holds is resolved after its `keep_firing_for`, counted from the first
        evaluation.
        """
        keep_s = {rule.name: rule.keep_s(self.config.alerts) for rule in self.rules}
        for alert in alerts:
            self._open[alert.key] = _Open(alert, keep_s.get(alert.name, 0.0))

    def evaluate(self, state: RunState) -> list[Transition]:
        """What changed with this state: what fired, in the order of the rules, then what was resolved."""
        firing = self._firing(state)
        self._wait(firing, state.t)
        ended = self._end(firing, state.t)
        begun = self._begin(firing, state.t)
        fired = begun | self._release(begun)
        return [
            *(Transition("fired", self._open[key].alert, state.t) for key in firing if key in fired),
            *(Transition("resolved", alert, state.t) for alert in ended),
        ]

    def _firing(self, state: RunState) -> dict[Key, tuple[Rule, Firing]]:
        return {
            (rule.name, tuple(sorted(firing.labels.items()))): (rule, firing)
            for rule in self.rules
            for firing in rule.check(state, self.config.alerts)
        }

    def _wait(self, firing: Mapping[Key, tuple[Rule, Firing]], t: float) -> None:
        """Remember since when each condition holds."""
        self._pending = {
            key: min(self._pending.get(key, t), t if each.since_t is None else each.since_t)
            for key, (_, each) in firing.items()
        }

    def _end(self, firing: Mapping[Key, tuple[Rule, Firing]], t: float) -> list[Alert]:
        ended = []
        for key in [key for key in self._open if key not in firing]:
            entry = self._open[key]
            if entry.absent_since_t is None:
                entry.absent_since_t = t
            if t - entry.absent_since_t >= entry.keep_s:
                ended.append(self._open.pop(key).alert)
        return ended

    def _begin(self, firing: Mapping[Key, tuple[Rule, Firing]], t: float) -> set[Key]:
        begun = set()
        for key, (rule, each) in firing.items():
            if entry := self._open.get(key):
                entry.absent_since_t = None
                entry.alert = replace(entry.alert, summary=each.summary, value=each.value)
            elif t - self._pending[key] >= rule.hold_s(self.config.alerts):
                alert = Alert(rule.name, rule.level, dict(each.labels), t, each.summary, each.value)
                self._open[key] = _Open(alert, rule.keep_s(self.config.alerts))
                begun.add(key)
        return begun

    def _release(self, begun: set[Key]) -> set[Key]:
        """Mark what is inhibited among the alerts that began; return those that no longer are.

        An alert that has once notified is never taken back, and one whose condition has gone by the time its
        inhibition ends stays silent.
        """
        released = set()
        for key, entry in self._open.items():
            inhibited = self._is_inhibited(entry.alert)
            if key in begun:
                entry.alert = replace(entry.alert, inhibited=inhibited)
            elif entry.alert.inhibited and not inhibited and entry.absent_since_t is None:
                entry.alert = replace(entry.alert, inhibited=False)
                released.add(key)
        return released

    def _is_inhibited(self, alert: Alert) -> bool:
        return any(
            alert.name in inhibition.targets
            and other.alert.name in inhibition.sources
            and all(
                bool(alert.labels.get(name)) and alert.labels[name] == other.alert.labels.get(name)
                for name in inhibition.equal
            )
            for inhibition in self.inhibitions
            for other in self._open.values()
        )
