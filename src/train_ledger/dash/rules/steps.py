"""Is the run going forward?"""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.dash.rule import Firing, Rule
from train_ledger.dash.rules.words import (
    AWAKE,
    QUIET_AFTER_THE_END,
    of_run,
    place_of_run,
    place_of_run_promql,
)
from train_ledger.ledger.state import RunState

__all__ = ["STEP_RULES"]


def _step_stalled(state: RunState, alerts: Alerts) -> list[Firing]:
    age_s = state.stalled_for_s
    if state.finished or age_s <= state.stall_threshold_s:
        return []
    limit = f"limit {state.stall_threshold_s:.0f} s" + (f" in {state.phase}" if state.phase else "")
    if state.last_step_t is None:
        text = f"no first step {age_s:.0f} s after its attempt began ({limit})"
    else:
        text = f"no step completed for {age_s:.0f} s ({limit})"
    return of_run(state, age_s, text + place_of_run(state))


STEP_RULES: tuple[Rule, ...] = (
    Rule(
        name="TrainingStepStalled",
        level="page",
        promql="run:train_step_age:seconds > on (run) run:train_stall_threshold:seconds"
        + QUIET_AFTER_THE_END
        + AWAKE,
        summary="{{ $labels.run }}: no step completed for {{ $value | humanizeDuration }}"
        + place_of_run_promql(),
        runbook="trainingstepstalled",
        check=_step_stalled,
        keep_firing_for_s="keep_firing_s",
    ),
)
