"""Do steps go on again, though the alerts of the stall are not resolved yet?

An alert is resolved only when its condition has been gone for minutes, so that a run that stands now and then
pages once. All that time a run that trains is not to be told as one that stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from train_ledger.dash.judge import Alert
from train_ledger.dash.page.view import PageView
from train_ledger.ledger.state import RunState

__all__ = ["Again", "goes_on_again", "moves", "state_since_t"]

_MOVING = ("running", "recovering", "numeric_fault", "hardware_fault")
"""No set: a state in the journal may be anything, also what no set can be asked for."""
_STALL = "TrainingStepStalled"
"""Whether this one holds follows from the state alone, also where nobody judged the run when it fired."""

_LATEST_T = 4e9
"""A journal that somebody changed may hold any number, also one that is no moment."""


@dataclass(frozen=True, slots=True)
class Again:
    """Steps are completed again, since `since_t` where that is known; `alerts` are open all the same."""

    since_t: float | None
    alerts: tuple[str, ...]


def goes_on_again(view: PageView) -> Again | None:
    """None where nothing stood, where it stands still, or where another page of the incident holds."""
    members = {alert.key: alert for incident in view.incidents for alert in incident.still_open}
    pages = [alert for alert in members.values() if alert.level == "page"]
    if not moves(view.state) or not any(alert.name == _STALL for alert in pages):
        return None
    now = {alert.key: alert for alert in view.alerts}
    gone = [_gone(alert, now.get(alert.key)) for alert in pages]
    if not all(gone):
        return None
    since_t = next(_resumed(view), None)
    return Again(since_t, tuple(sorted({alert.name for alert in pages})))


def state_since_t(view: PageView) -> float | None:
    """Since when the run is in its state; a state by itself does not know that it was left in between."""
    since_t = view.state.since_t
    resumed_t = next(_resumed(view), None) if view.state.state in _MOVING else None
    return max((t for t in (since_t, resumed_t) if t is not None), default=None)


def moves(state: RunState) -> bool:
    """Whether steps are completed, whatever else is wrong."""
    stands = state.stalled_for_s > state.stall_threshold_s
    return state.state in _MOVING and not stands and state.unreadable is None


def _gone(alert: Alert, now: Alert | None) -> bool:
    if now is None:
        return alert.name == _STALL
    return now.gone_t is not None


def _resumed(view: PageView) -> Iterator[float]:
    """When steps came again: by the keeper's journal, else by when the alert's condition was gone."""
    for entry in reversed(view.journal):
        t = entry.get("t")
        if entry.get("kind") == "state_changed" and isinstance(t, int | float) and 0 <= t < _LATEST_T:
            if entry.get("state") in _MOVING and entry.get("before") not in _MOVING:
                yield t
            if entry.get("state") not in _MOVING:
                break
    yield from (alert.gone_t for alert in view.alerts if alert.name == _STALL and alert.gone_t is not None)
