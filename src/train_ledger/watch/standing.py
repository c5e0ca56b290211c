"""Where does the run stand still, and did it before?"""

from __future__ import annotations

from collections.abc import Iterable

from train_ledger.dash import Incident
from train_ledger.ledger import RunState
from train_ledger.watch.recall import Place

__all__ = ["standing_place", "stands_again"]


def stands_again(incident: Incident, state: RunState, before: Iterable[Place | None]) -> bool:
    """Whether it stood still before, or somebody has restarted it since.

    A run that comes to a stand by what it was paged for is told by its alerts, where anybody is to be told.
    """
    restarted = bool(state.attempts) and state.attempts[-1].started_t > incident.opened_t
    return restarted or any(place is not None for place in before)


def standing_place(state: RunState) -> Place | None:
    """Where the run stands still; None while it goes on."""
    stands = state.stalled_for_s > state.stall_threshold_s or state.state == "stopped"
    return (state.attempt, state.step) if stands and not state.finished else None
