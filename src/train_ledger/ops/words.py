"""How is the step clock said in one sentence?"""

from __future__ import annotations

from train_ledger.ledger import RunState

__all__ = ["step_clock"]


def step_clock(state: RunState) -> str:
    """When the run last completed a step, for how long none has, and the limit that holds."""
    if not state.attempts and state.step is None:
        return "step clock: nothing was written by any rank yet"
    if state.last_step_t is None:
        return (
            f"step clock: no step since attempt {state.attempt} began {state.stalled_for_s:.0f} s ago "
            f"(limit {state.stall_threshold_s:.0f} s)"
        )
    return (
        f"step clock: step {state.step} was completed {state.stalled_for_s:.0f} s ago, none since "
        f"(limit {state.stall_threshold_s:.0f} s)"
    )
