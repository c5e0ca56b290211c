"""Could the run go on from where it is, if it failed now?"""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.dash.conditions import checkpoint_due_t, recent_failed_saves, slow_saves
from train_ledger.dash.rule import Firing, Rule
from train_ledger.dash.rules.words import (
    QUIET_AFTER_THE_END,
    clock,
    grew,
    of_run,
    place_of_run,
    place_of_run_promql,
)
from train_ledger.ledger.state import RunState
from train_ledger.render import harmless

__all__ = ["CHECKPOINT_RULES"]


def _checkpoint_save_failed(state: RunState, alerts: Alerts) -> list[Firing]:
    if state.finished:
        return []
    if failed := recent_failed_saves(state, alerts):
        last = state.checkpoints.failed[-1]
        at = "" if last.step is None else f" at step {last.step}"
        error = harmless(last.error, longest=300)
        text = f"{failed} failed checkpoint save{'s' if failed > 1 else ''}, the last{at}: {error}"
        return of_run(state, failed, text + place_of_run(state))
    if (slow := slow_saves(state, alerts)) == 2:
        last_s = state.checkpoints.durations_s[-1]
        text = f"two checkpoint saves in a row took over {alerts.checkpoint_slow_factor:g} times the usual"
        return of_run(state, slow, f"{text}, the last {last_s:.0f} s{place_of_run(state)}")
    due_t = checkpoint_due_t(state, alerts)
    if due_t is not None and state.t > due_t:
        text = f"no checkpoint since step {state.checkpoints.saved_step}; one was due by {clock(due_t)}"
        return of_run(state, state.t - due_t, text + place_of_run(state))
    return []


CHECKPOINT_RULES: tuple[Rule, ...] = (
    Rule(
        name="CheckpointSaveFailed",
        level="page",
        promql=f"""(
  ({grew("train_ckpt_failed_total", "$checkpoint_window")}) > 0
  or on (run) max by (run) (train_ckpt_slow_saves) >= 2
  or on (run) max by (run) (
    time() - (train_ckpt_due_timestamp_seconds
      + on (instance) group_left () last_over_time(train:clock_offset:seconds[$lookback]))
  ) > 0
)"""
        + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: checkpoints fail, take over $checkpoint_slow_factor times the usual, "
        "or do not come" + place_of_run_promql(),
        runbook="checkpointsavefailed",
        check=_checkpoint_save_failed,
        keep_firing_for_s="keep_firing_s",
    ),
)
