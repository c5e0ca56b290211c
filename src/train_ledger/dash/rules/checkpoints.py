"""Could the run go on from where it is, if it failed now?"""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.dash.conditions import checkpoint_due_t, recent_failed_saves, save_ratio, slow_saves
from train_ledger.dash.rule import Firing, Recording, Rule
from train_ledger.dash.rules.recordings import of, remembered
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

__all__ = ["CHECKPOINT_RECORDINGS", "CHECKPOINT_RULES"]


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


def _checkpoint_slow(state: RunState, alerts: Alerts) -> list[Firing]:
    ratio, durations_s = save_ratio(state), state.checkpoints.durations_s
    slow = ratio is not None and ratio > alerts.checkpoint_slower_factor
    if state.finished or not slow or durations_s[-1] <= alerts.checkpoint_slow_floor_s:
        return []
    text = f"the last checkpoint took {durations_s[-1]:.0f} s, {ratio:.1f} times the usual"
    return of_run(state, ratio or 0.0, text + place_of_run(state))


_SLOW = of("max by (run)", remembered("train_ckpt_slow_saves"))

# A run that stands owes no checkpoint: of a dead exporter it counts what was overdue when it spoke last.
_OVERDUE = of(
    "max by (run)",
    of("", "train_exporter_clock_seconds\nor last_over_time(train_exporter_clock_seconds[$lookback])")
    + "\n- on (run, instance) "
    + of("", remembered("train_ckpt_due_timestamp_seconds")),
)

_SLOW_NOW = "max by (run) (last_over_time(train_ckpt_slow_saves{run=%q}[$lookback])) >= 2"
_OVERDUE_NOW = "time() - max by (run) (train_ckpt_due_timestamp_seconds{run=%q}) > 0"
_WHAT_IS_WRONG = (
    f'{{{{ with printf "{_SLOW_NOW}" $labels.run | query }}}}'
    "two checkpoint saves in a row took over $checkpoint_slow_factor times the usual"
    f'{{{{ else }}}}{{{{ with printf "{_OVERDUE_NOW}" $labels.run | query }}}}'
    "no checkpoint has come since one was due"
    "{{ else }}a checkpoint save failed, or none comes any more{{ end }}{{ end }}"
)

_RATIO = (
    of("max by (run)", remembered("train_ckpt_duration_ratio"))
    + """
or on (run) (
  run:train_ckpt_duration:seconds
  / quantile_over_time(0.5, run:train_ckpt_duration:seconds[$effective_from_age])
)"""
)
"""By the run's own saves; where nobody counts them, by how long it was that they took so long."""

CHECKPOINT_RECORDINGS: tuple[Recording, ...] = (
    Recording("run:train_ckpt_duration:seconds", of("max by (run)", remembered("train_ckpt_duration_s"))),
)

CHECKPOINT_RULES: tuple[Rule, ...] = (
    Rule(
        name="CheckpointSaveFailed",
        level="page",
        promql=of(
            "",
            f"{of('', grew('train_ckpt_failed_total', '$checkpoint_window'))} > 0\n"
            f"or on (run) {_SLOW} >= 2\nor on (run) {_OVERDUE} > 0",
        )
        + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: " + _WHAT_IS_WRONG + place_of_run_promql(),
        runbook="checkpointsavefailed",
        check=_checkpoint_save_failed,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="CheckpointSlow",
        level="record",
        promql=f"{of('', _RATIO)} > $checkpoint_slower_factor\n"
        "and on (run) run:train_ckpt_duration:seconds > $checkpoint_slow_floor_s" + QUIET_AFTER_THE_END,
        summary='{{ $labels.run }}: the last checkpoint took {{ $value | printf "%.1f" }} times the usual'
        + place_of_run_promql(),
        runbook="checkpointslow",
        check=_checkpoint_slow,
    ),
)
