"""Which conditions wake somebody, and which are only put on record?

Each rule stands here once: its name (a contract, runbooks and silences hang on it), its level, what it means
in PromQL and what it means on the state of a run. `promql.alerts_yml` makes a rules file for Prometheus of
this table; `judge.Judge` evaluates it without any server.

In the PromQL, `$name` is a threshold of `config.Alerts` as a number, and `$name` without its `_s` the same as
a duration. One test decides about the level: if nobody acts, are GPU-hours lost for the next hour?
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from train_ledger.config import Alerts
from train_ledger.dash.conditions import (
    checkpoint_due_t,
    last_loss_finite,
    lost_ranks,
    recent_failed_saves,
    restarts_since,
    slow_saves,
)
from train_ledger.dash.rule import Firing, Inhibition, Rule
from train_ledger.ledger.state import RunState
from train_ledger.render import harmless, ranks_in_words

__all__ = ["INHIBITIONS", "RULES"]

INHIBITIONS = (
    Inhibition(
        sources=frozenset({"GpuXidError", "GpuEccDbe", "TrainingRestarting"}),
        targets=frozenset({"TrainingStepStalled", "TrainingProcessGone", "TrainingTelemetryLost"}),
    ),
    Inhibition(sources=frozenset({"GpuXidError"}), targets=frozenset({"GpuClockLow"}), equal=("run", "host")),
)


def _clock(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%SZ")


def _of_run(state: RunState, value: float, summary: str, since_t: float | None = None) -> list[Firing]:
    return [Firing({"run": state.run}, value, harmless(f"{state.run}: {summary}", longest=500), since_t)]


def _where(state: RunState) -> str:
    step = "before the first step" if state.step is None else f"step {state.step}"
    return f"{step}, attempt {state.attempt}"


def _ranks(ranks: Iterable[int]) -> str:
    return harmless(ranks_in_words(ranks), longest=120)


def _step_stalled(state: RunState, alerts: Alerts) -> list[Firing]:
    age_s = state.stalled_for_s
    if state.finished or age_s <= state.stall_threshold_s:
        return []
    limit = f"limit {state.stall_threshold_s:.0f} s" + (f" in {state.phase}" if state.phase else "")
    if state.last_step_t is None:
        text = f"no first step {age_s:.0f} s after attempt {state.attempt} began ({limit})"
    else:
        text = f"no step completed for {age_s:.0f} s ({limit}); the last was {_where(state)}"
    return _of_run(state, age_s, text)


def _loss_not_finite(state: RunState, alerts: Alerts) -> list[Firing]:
    if state.finished:
        return []
    bad = sorted(
        (rank.nonfinite_t, rank.rank, rank.nonfinite_step)
        for rank in state.ranks.values()
        if rank.nonfinite_t is not None
        and (rank.nonfinite_t > state.t - alerts.loss_window_s or not last_loss_finite(rank))
    )
    if not bad:
        return []
    ranks = sorted(rank for _, rank, _ in bad)
    newest_t, _, step = bad[-1]
    of_all = any(state.ranks[rank].speaks_for_all for rank in ranks)
    whose = "" if of_all else f" on {_ranks(ranks)}"
    text = f"the loss was not finite{whose} (last at step {step}, {_clock(newest_t)})"
    return _of_run(state, len(ranks), f"{text}; attempt {state.attempt}")


def _restart_loop(state: RunState, alerts: Alerts) -> list[Firing]:
    restarts = restarts_since(state, state.t - alerts.restart_loop_window_s)
    if state.finished or restarts < alerts.restart_loop_count:
        return []
    minutes = alerts.restart_loop_window_s / 60
    return _of_run(state, restarts, f"{restarts} restarts within {minutes:.0f} min; now {_where(state)}")


def _checkpoint_save_failed(state: RunState, alerts: Alerts) -> list[Firing]:
    if state.finished:
        return []
    if failed := recent_failed_saves(state, alerts):
        last = state.checkpoints.failed[-1]
        at = "" if last.step is None else f" at step {last.step}"
        text = f"{failed} failed checkpoint save{'s' if failed > 1 else ''}, the last{at}: {last.error}"
        return _of_run(state, failed, text)
    if (slow := slow_saves(state, alerts)) == 2:
        last_s = state.checkpoints.durations_s[-1]
        text = f"two checkpoint saves in a row took over {alerts.checkpoint_slow_factor:g} times the usual"
        return _of_run(state, slow, f"{text}, the last {last_s:.0f} s")
    due_t = checkpoint_due_t(state, alerts)
    if due_t is not None and state.t > due_t:
        text = f"no checkpoint since step {state.checkpoints.saved_step}; one was due by {_clock(due_t)}"
        return _of_run(state, state.t - due_t, text)
    return []


def _process_gone(state: RunState, alerts: Alerts) -> list[Firing]:
    lost = {} if state.finished else lost_ranks(state, alerts)
    if not lost:
        return []
    since_t = min(lost.values())
    ranks = sorted(lost)
    hosts = sorted({state.ranks[rank].host or "" for rank in ranks} - {""})
    on = f" on {', '.join(hosts[:4])}" + (" …" if len(hosts) > 4 else "") if hosts else ""
    seen_dead = any(state.ranks[rank].gone_t is not None for rank in ranks)
    what = "process gone" if seen_dead else "silent while others on the host go on,"
    text = f"{_ranks(ranks)}{on}: {what} since {_clock(since_t)} and no new attempt"
    return _of_run(state, len(ranks), f"{text}; {_where(state)}", since_t)


def _restarting(state: RunState, alerts: Alerts) -> list[Firing]:
    since_t = state.t if state.since_t is None else state.since_t
    if state.state != "restarting" or state.t - since_t >= alerts.restart_inhibits_s:
        return []
    return _of_run(state, 1.0, f"a restart is under way since {_clock(since_t)}, attempt {state.attempt}")


_QUIET_AFTER_THE_END = "\nunless on (run) (run:train_run_finished:bool == 1)"


def _grew(metric: str, window: str) -> str:
    """By how much a counter of the run grew within the window.

    Unlike `increase` this counts what a counter of a young run was born with; of an older run only what
    was added since it was first scraped is news.
    """
    now = f"max by (run) (last_over_time({metric}[{window}]))"
    return f"""{now}
- on (run) (
  max by (run) (last_over_time({metric}[{window}] offset {window}))
  or on (run) (
    max by (run) (min_over_time({metric}[{window}]))
    and on (run) run:train_run_age:seconds > {window}_s
  )
  or on (run) 0 * {now}
)"""


RULES: tuple[Rule, ...] = (
    Rule(
        name="TrainingStepStalled",
        level="page",
        promql="run:train_step_age:seconds > on (run) run:train_stall_threshold:seconds"
        + _QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: no step completed for {{ $value | humanizeDuration }}",
        runbook="trainingstepstalled",
        check=_step_stalled,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="TrainingLossNotFinite",
        level="page",
        promql="""(
  count by (run) (increase(train_loss_nonfinite_total[$loss_window]) > 0)
  or on (run) count by (run) (
    (train_loss_nonfinite_total unless train_loss_nonfinite_total offset $loss_window) > 0
      unless on (run) run:train_run_age:seconds > $loss_window_s
  )
  or on (run) count by (run) (train_loss_is_finite == 0)
)"""
        + _QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: the loss was not finite on {{ $value }} rank(s)",
        runbook="traininglossnotfinite",
        check=_loss_not_finite,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="TrainingRestartLoop",
        level="page",
        promql=f"({_grew('train_restart_total', '$restart_loop_window')}) >= $restart_loop_count"
        + _QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: {{ $value }} restarts within $restart_loop_window",
        runbook="trainingrestartloop",
        check=_restart_loop,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="CheckpointSaveFailed",
        level="page",
        promql=f"""(
  ({_grew("train_ckpt_failed_total", "$checkpoint_window")}) > 0
  or on (run) max by (run) (train_ckpt_slow_saves) >= 2
  or on (run) max by (run) (
    time() - (train_ckpt_due_timestamp_seconds
      + on (instance) group_left () last_over_time(train:clock_offset:seconds[$lookback]))
  ) > 0
)"""
        + _QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: checkpoints fail, take over $checkpoint_slow_factor times the usual, "
        "or do not come",
        runbook="checkpointsavefailed",
        check=_checkpoint_save_failed,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="TrainingProcessGone",
        level="page",
        promql="count by (run) (run_rank:train_process_up:last == 0)" + _QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: the processes of {{ $value }} rank(s) are gone and no new attempt began",
        runbook="trainingprocessgone",
        check=_process_gone,
        for_s="process_gone_s",
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="TrainingRestarting",
        level="record",
        promql="""max by (run) (train_run_state{state="restarting"}) == 1
unless on (run) (
  max by (run) (min_over_time(train_run_state{state="restarting"}[$restart_inhibits])) == 1
  and on (run) max by (run) (train_run_state{state="restarting"} offset $restart_inhibits) == 1
)""",
        summary="{{ $labels.run }}: a restart is under way",
        runbook="trainingrestarting",
        check=_restarting,
    ),
)
