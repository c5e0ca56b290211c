"""Which alerts fired, from when until when, and where?

By the journal's transitions alone. An alert that fired while another explained it, and that was told once the
other was over, is one firing from its beginning on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from train_ledger.dash import Transition
from train_ledger.ops.journal_values import moment

__all__ = ["Firing", "Firings", "firings_of"]


@dataclass(frozen=True, slots=True)
class Firing:
    """One firing of one alert; `until_t` is None while it lasts.

    `inhibited` says that nobody was ever told, since another alert explained it.
    """

    name: str
    level: str
    labels: Mapping[str, str]
    since_t: float
    until_t: float | None
    summary: str
    inhibited: bool = False

    def seconds_in(self, since_t: float, until_t: float) -> float:
        """How much of it lies between two moments."""
        end = until_t if self.until_t is None else min(self.until_t, until_t)
        return max(0.0, end - max(self.since_t, since_t))

    def touches(self, since_t: float, until_t: float) -> bool:
        """Whether it lasted at some time between two moments."""
        return self.since_t < until_t and (self.until_t is None or self.until_t >= since_t)


class Firings(NamedTuple):
    """The firings by their beginnings, when the journal begins, and how many alerts made no sense."""

    firings: tuple[Firing, ...]
    first_t: float | None
    unknown: int = 0


def firings_of(entries: Iterable[Mapping[str, Any]]) -> Firings:
    """Pair what fired with what was resolved, oldest first."""
    open_: dict[Any, Firing] = {}
    over: list[Firing] = []
    first_t: float | None = None
    unknown = 0
    for entry in entries:
        t = entry.get("t")
        first_t = moment(t) if first_t is None else first_t
        if entry.get("kind") not in ("alert_fired", "alert_resolved"):
            continue
        try:
            transition = Transition.from_json(entry["transition"])
            _take(transition, open_, over)
        except (KeyError, TypeError, ValueError):
            unknown += 1
    found = sorted([*over, *open_.values()], key=lambda it: it.since_t)
    return Firings(tuple(found), first_t, unknown)


def _take(transition: Transition, open_: dict[Any, Firing], over: list[Firing]) -> None:
    """Raises ValueError for a time that is none."""
    alert = transition.alert
    if moment(transition.t) is None or moment(alert.fired_t) is None:
        raise ValueError(transition.t)
    labels = {str(name): str(value) for name, value in alert.labels.items()}
    known = open_.get(alert.key)
    if transition.kind == "resolved":
        if known is not None:
            over.append(replace(open_.pop(alert.key), until_t=transition.t))
    elif known is None:
        since_t = min(alert.fired_t, transition.t)
        summary, inhibited = str(alert.summary), alert.inhibited
        name, level = str(alert.name), str(alert.level)
        open_[alert.key] = Firing(name, level, labels, since_t, None, summary, bool(inhibited))
    else:
        told = known.inhibited and alert.inhibited
        open_[alert.key] = replace(known, summary=str(alert.summary), inhibited=told)
