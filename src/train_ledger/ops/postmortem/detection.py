"""How long did it take to notice, and how long should it have taken?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from train_ledger.config import Alerts
from train_ledger.ops.postmortem.incident import Incident

__all__ = ["Detection", "detection"]

_STALLED = "TrainingStepStalled"
_TOLD_WITHIN_S = 20.0
"""A stall is told at most so long after its threshold."""


@dataclass(frozen=True, slots=True)
class Detection:
    """Seconds from the last step to the alert, the page and the verdict; None where one is missing.

    `expected_s` is when the page was to be out at the latest, `threshold_s` the limit that had to pass first;
    None for an alert that is not about standing still. `warned_s` is how long before the last step a page of
    the incident had gone out already, None where none had.
    """

    alert_s: float | None = None
    paged_s: float | None = None
    verdict_s: float | None = None
    threshold_s: float | None = None
    expected_s: float | None = None
    warned_s: float | None = None

    @property
    def is_as_expected(self) -> bool:
        return self.paged_s is not None and self.expected_s is not None and self.paged_s <= self.expected_s

    @property
    def late_s(self) -> float | None:
        """By how much the page was late; None where it was not, or nobody can say."""
        if self.paged_s is None or self.expected_s is None or self.is_as_expected:
            return None
        return self.paged_s - self.expected_s

    def told(self) -> Iterable[str]:
        """In words."""
        for what, length_s in (("alert", self.alert_s), ("page", self.paged_s), ("verdict", self.verdict_s)):
            if length_s is not None:
                yield f"from the last step to the {what}: {length_s:.1f} s"
        if self.warned_s is not None:
            yield f"a page of this incident had gone out {self.warned_s:.1f} s before the last step"
        if self.paged_s is None and self.warned_s is not None:
            return
        if self.threshold_s is not None and self.expected_s is not None:
            late = "later than expected, unless it stood in a phase with a limit of its own"
            judged = "as expected" if self.is_as_expected else late
            limit = (
                f"the threshold is {self.threshold_s:.0f} s, a page at most {_TOLD_WITHIN_S:.0f} s after it"
            )
            yield f"expected: {limit}{f'; {judged}' if self.paged_s is not None else '; there was no page'}"


def detection(
    incident: Incident, stood_t: float | None, step_time_s: float | None, alerts: Alerts
) -> Detection:
    """Of a run that stands still again what was told before is no detection of it."""
    if stood_t is None:
        return Detection()
    since = {
        kind: it.t - stood_t
        for kind in ("alert_fired", "notification_intended", "verdict")
        if (it := incident.first(kind, stood_t)) is not None and it.t is not None
    }
    threshold_s = None
    if _STALLED in incident.alerts:
        threshold_s = max(alerts.stall_floor_s, alerts.stall_factor * (step_time_s or 0.0))
    return Detection(
        alert_s=since.get("alert_fired"),
        paged_s=since.get("notification_intended"),
        verdict_s=since.get("verdict"),
        threshold_s=threshold_s,
        expected_s=None if threshold_s is None else threshold_s + _TOLD_WITHIN_S,
        warned_s=_warned_s(incident, stood_t),
    )


def _warned_s(incident: Incident, stood_t: float) -> float | None:
    page = incident.first("notification_intended")
    return stood_t - page.t if page is not None and page.t is not None and page.t < stood_t else None
