"""Which starts of a long run stand in the middle of its files, where its lines are not read?

Restarts in quick succession may lie there; rank 0's own lines of its starts are few, and are found without a
look at the others.
"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.ledger import RunState
from train_ledger.ledger.state import Attempt
from train_ledger.ops.troubles.signal_events import events_told
from train_ledger.run_dir import RunDir

__all__ = ["with_all_starts"]

_STARTS = frozenset({"run_start"})


def with_all_starts(run_dir: RunDir, state: RunState) -> RunState:
    """The state with the attempts that rank 0, or the first that there is, tells of besides."""
    if state.by_logs or not state.ranks:
        return state
    known = {it.number for it in state.attempts}
    if known >= {*range(min(known, default=0), state.attempt + 1)}:
        return state  # none is missing between them, and the whole of a long file need not be looked through
    told = events_told(run_dir, _STARTS, [min(state.ranks)]).events
    first_t: dict[int, float] = {}
    for it in told:
        if it.attempt not in known and it.attempt <= state.attempt and it.t <= state.t:
            first_t.setdefault(it.attempt, it.t)
    if not first_t:
        return state
    missed = (Attempt(number, t) for number, t in first_t.items())
    return replace(state, attempts=tuple(sorted((*state.attempts, *missed), key=lambda it: it.number)))
