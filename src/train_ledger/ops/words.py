"""How is the step clock said in one sentence?"""

from __future__ import annotations

from train_ledger.ledger import RunState
from train_ledger.render import ranks_in_brief

__all__ = ["step_clock"]

_PHASES = {
    "checkpoint_save": "a checkpoint is being saved",
    "checkpoint_load": "a checkpoint is being loaded",
    "evaluation": "an evaluation is open",
    "start_up": "it starts up",
    "compile": "it compiles",
}


def step_clock(state: RunState) -> str:
    """When the run last completed a step, for how long none has, and the limit that holds."""
    if not state.attempts and state.step is None:
        return "step clock: nothing was written by any rank yet"
    if state.last_step_t is None:
        return (
            f"step clock: no step since attempt {state.attempt} began {state.stalled_for_s:.0f} s ago "
            f"({_limit(state)})"
        )
    return (
        f"step clock: step {state.step} was completed {state.stalled_for_s:.0f} s ago, none since "
        f"({_limit(state)})"
    )


def _limit(state: RunState) -> str:
    limit = f"limit {state.stall_threshold_s:.0f} s"
    if state.phase is None:
        return limit
    by = [rank for rank, it in state.ranks.items() if it.phase == state.phase]
    is_of_all = any(state.ranks[rank].speaks_for_all for rank in by)
    who = f" by {ranks_in_brief(by)}" if 0 < len(by) < len(state.ranks) and not is_of_all else ""
    return f"{limit}, since {_PHASES.get(state.phase, f'phase {state.phase} is open')}{who}"
