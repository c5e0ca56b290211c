"""Which incidents were found, how long after they began, and which pages were for nothing?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from train_ledger.config import Alerts
from train_ledger.dash.backtest.history import PastAlert
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.kinds import KINDS

__all__ = ["Found", "Outcome", "outcome_of", "totals"]


@dataclass(frozen=True, slots=True)
class Found:
    """An incident, the first page about it, and after how many seconds people knew; None: nobody was told."""

    incident: PastIncident
    found_by: str | None = None
    detection_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "t": self.incident.t,
            "kind": self.incident.kind,
            "found_by": self.found_by,
            "detection_s": self.detection_s,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the incidents of a run; `pages` went out, `false_pages` among them for nothing."""

    found: tuple[Found, ...]
    pages: tuple[PastAlert, ...]
    false_pages: tuple[PastAlert, ...]

    @property
    def missed(self) -> tuple[Found, ...]:
        return tuple(it for it in self.found if it.found_by is None)


def outcome_of(incidents: Sequence[PastIncident], alerts: Sequence[PastAlert], thresholds: Alerts) -> Outcome:
    """Hold the pages of a run against its incidents.

    A page is right where it fired while an incident lasted that it is about (`KINDS`), or within two
    evaluations of its end. An incident at the edge of a threshold is left out where nobody was told of it.
    """
    slack_s = 2 * thresholds.evaluation_interval_s
    pages = [it for it in alerts if it.level == "page"]
    told = [it for it in pages if it.notified_t is not None]
    false = [it for it in told if not any(_is_right(it, one, slack_s) for one in incidents)]
    right = [it for it in pages if any(_is_right(it, one, slack_s) for one in incidents)]
    found = [_found(one, right, slack_s) for one in incidents]
    counted = tuple(it for it in found if it.found_by is not None or it.incident.clear)
    return Outcome(counted, tuple(told), tuple(false))


def _is_right(page: PastAlert, incident: PastIncident, slack_s: float) -> bool:
    kind = KINDS.get(incident.kind)
    return (kind is None or page.name in kind.about) and _fits(page, incident, slack_s)


def _finds(page: PastAlert, incident: PastIncident) -> bool:
    kind = KINDS.get(incident.kind)
    return kind is None or page.name in kind.about | kind.told_by


def _fits(page: PastAlert, incident: PastIncident, slack_s: float) -> bool:
    return _within(page, incident, slack_s) and _is_at(page, incident)


def _is_at(page: PastAlert, incident: PastIncident) -> bool:
    """Whether it names no other host and no other GPU than the incident is at."""
    return all(page.labels.get(name, there) == there for name, there in incident.place.items())


def _within(page: PastAlert, incident: PastIncident, slack_s: float) -> bool:
    return incident.t <= page.fired_t <= incident.until_t + slack_s


def _found(incident: PastIncident, pages: Iterable[PastAlert], slack_s: float) -> Found:
    """By the first page of it that people know of; by one that told already of an earlier one, at once."""
    known: list[tuple[float, str]] = []
    for page in pages:
        if page.known_t is None or not _finds(page, incident) or not _is_at(page, incident):
            continue
        if _within(page, incident, slack_s):
            known.append((page.known_t - incident.t, page.name))
        elif page.known_t < incident.t and (page.resolved_t is None or page.resolved_t > incident.t):
            known.append((0.0, page.name))
    if not known:
        return Found(incident)
    detection_s, name = min(known)
    return Found(incident, name, round(detection_s, 3))


def totals(outcomes: Iterable[Outcome], hours: float) -> Mapping[str, Any]:
    """The figures of all runs together, which ran for so many `hours`."""
    outcomes = list(outcomes)
    detections = [it.detection_s for one in outcomes for it in one.found if it.detection_s is not None]
    missed = sum(len(one.missed) for one in outcomes)
    return {
        "runs": len(outcomes),
        "hours": round(hours, 3),
        "incidents": len(detections) + missed,
        "found": len(detections),
        "missed": missed,
        "detection_median_s": median(detections) if detections else None,
        "detection_max_s": max(detections, default=None),
        "pages": sum(len(one.pages) for one in outcomes),
        "false_pages": sum(len(one.false_pages) for one in outcomes),
    }
