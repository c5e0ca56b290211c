"""How did the run come back from its restart, in one sentence?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from train_ledger.ledger import RunState

__all__ = ["came_back", "recovery_in_words"]


def came_back(state: RunState, since_t: float) -> dict[str, Any] | None:
    """How the run came back from a restart that began since then, as JSON values; None where it did not."""
    found = state.recovery
    began_t = next((it.started_t for it in state.attempts if found and it.number == found.attempt), None)
    if found is None or began_t is None or not found.is_over or began_t < since_t:
        return None
    return asdict(found)


def recovery_in_words(recovery: Mapping[str, Any]) -> str:
    """A `state.Recovered` as JSON values.

    >>> recovery_in_words({"redone_steps": 0, "reached": 150, "loss_joins_on": None, "data_agrees": True})
    'past step 150 again, no step was lost; whether the loss joins on was not observed; the data goes on'
    """
    redone = recovery.get("redone_steps")
    steps = f"{redone} step{'' if redone == 1 else 's'} done once more" if redone else "no step was lost"
    return "; ".join((f"past step {recovery.get('reached')} again, {steps}", *_held_against(recovery)))


def _held_against(recovery: Mapping[str, Any]) -> Iterator[str]:
    joins_on, agrees = recovery.get("loss_joins_on"), recovery.get("data_agrees")
    if joins_on is None:
        yield "whether the loss joins on was not observed"
    else:
        yield f"the loss {'joins on' if joins_on else 'DOES NOT JOIN ON'} ({_difference(recovery)})"
    if agrees is None:
        yield "whether the data agrees was not observed"
    else:
        yield "the data goes on" if agrees else "the data goes on ELSEWHERE than it stood"


def _difference(recovery: Mapping[str, Any]) -> str:
    difference, tolerance = recovery.get("loss_difference"), recovery.get("loss_tolerance")
    of = f"over {recovery.get('loss_compared')} steps"
    if not isinstance(difference, int | float) or not isinstance(tolerance, int | float):
        return f"it is not finite {of}"
    return f"differs by {difference:.2g} {of}, up to {tolerance:.2g} is usual"
