"""Do the processes of the run live, and do they begin again and again?"""

from __future__ import annotations

from textwrap import indent

from train_ledger.config import Alerts
from train_ledger.dash.conditions import lost_ranks, restarts_since
from train_ledger.dash.rule import Firing, Rule
from train_ledger.dash.rules.recordings import age_of
from train_ledger.dash.rules.words import (
    QUIET_AFTER_THE_END,
    clock,
    grew,
    of_run,
    place_of_run,
    place_of_run_promql,
    ranks_told,
)
from train_ledger.ledger.state import RunState

__all__ = ["RESTART_RULES"]


def _restart_loop(state: RunState, alerts: Alerts) -> list[Firing]:
    restarts = restarts_since(state, state.t - alerts.restart_loop_window_s)
    if state.finished or restarts < alerts.restart_loop_count:
        return []
    minutes = alerts.restart_loop_window_s / 60
    return of_run(state, restarts, f"{restarts} restarts within {minutes:.0f} min{place_of_run(state)}")


def _process_gone(state: RunState, alerts: Alerts) -> list[Firing]:
    gone = {} if state.finished else lost_ranks(state, alerts)
    lost = {rank: t for rank, t in gone.items() if state.t - t >= alerts.process_gone_s}
    if not lost:
        return []
    since_t = min(lost.values())
    ranks = sorted(lost)
    hosts = sorted({state.ranks[rank].host or "" for rank in ranks} - {""})
    on = f" on {', '.join(hosts[:4])}" + (" …" if len(hosts) > 4 else "") if hosts else ""
    seen_dead = any(state.ranks[rank].gone_t is not None for rank in ranks)
    what = "process gone" if seen_dead else "silent while others on the host go on,"
    text = f"{ranks_told(ranks)}{on}: {what} since {clock(since_t)} and no new attempt"
    return of_run(state, len(ranks), text + place_of_run(state), since_t)


def _restarting(state: RunState, alerts: Alerts) -> list[Firing]:
    since_t = state.t if state.since_t is None else state.since_t
    if state.state != "restarting" or state.t - since_t >= alerts.restart_inhibits_s:
        return []
    return of_run(state, 1.0, f"no step yet since the restart at {clock(since_t)}{place_of_run(state)}")


# Counted from when a process was last known to live, where its exporter says so. Else from when it was first
# seen dead, which `for` cannot do beside: it would count from the first evaluation in both cases. What a dead
# exporter said of an earlier attempt is remembered for as long as what it said last: a rank that was up then
# is not gone.
_GONE_FOR_LONG = f"""max by (run, rank) (
{indent(age_of("train_process_gone_timestamp_seconds"), "  ")}
) >= $process_gone_s
unless on (run, rank) run_rank:train_process_up:last == 1
or (
  max_over_time(run_rank:train_process_up:last[$process_gone]) == 0
  and run_rank:train_process_up:last offset $process_gone == 0
)"""

_WHO_IS_GONE = (
    '{{ with printf "topk(4, run_rank:train_process_up:last{run=%q} == 0)" $labels.run | query '
    '| sortByLabel "rank" }}'
    " ({{ if gt (len .) 1 }}among them {{ end }}rank"
    '{{ range $place, $it := . }}{{ if $place }},{{ end }} {{ $it | label "rank" }}{{ end }}){{ end }}'
)

_RESTARTING = """(
  run:train_restarting:bool == 1
  unless on (run) run:train_attempt_age:seconds >= $restart_inhibits_s
)"""

# What Alertmanager was told of before the restart must not be silenced by it: an alert that ends in silence
# is never told to be over, and the next one is taken for the same and not told at all. So the restart carries
# a mark for as long as such a page can still be on its way to its end, unless it began without one.
_PAGES = """ALERTS{
    alertname=~"TrainingStepStalled|TrainingProcessGone|TrainingTelemetryLost", alertstate="firing"
  }"""
_PAGE_IS_OPEN = f"""
  max by (run) (
    max_over_time({_PAGES}[$group_interval])
    or max_over_time({_PAGES}[1m] offset $group_interval)
  )
  unless on (run) ALERTS{{alertname="TrainingRestarting", alertstate="firing", paged=""}}
"""

RESTART_RULES: tuple[Rule, ...] = (
    Rule(
        name="TrainingRestartLoop",
        level="page",
        promql=f"({grew('train_restart_total', '$restart_loop_window')}) >= $restart_loop_count"
        + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: {{ $value }} restarts within $restart_loop_window"
        + place_of_run_promql(),
        runbook="trainingrestartloop",
        check=_restart_loop,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="TrainingProcessGone",
        level="page",
        promql=f"count by (run) (\n{indent(_GONE_FOR_LONG, '  ')}\n){QUIET_AFTER_THE_END}",
        summary="{{ $labels.run }}: {{ if eq $value 1.0 }}the process of a rank is{{ else }}the processes of "
        "{{ $value }} ranks are{{ end }} gone"
        + _WHO_IS_GONE
        + " and no new attempt began"
        + place_of_run_promql(),
        runbook="trainingprocessgone",
        check=_process_gone,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="TrainingRestarting",
        level="record",
        promql=f"""label_replace(
  {_RESTARTING} and on (run) ({_PAGE_IS_OPEN}),
  "paged", "before", "", ""
)
or {_RESTARTING} unless on (run) ({_PAGE_IS_OPEN})""",
        summary="{{ $labels.run }}: no step yet since the restart" + place_of_run_promql(),
        runbook="trainingrestarting",
        check=_restarting,
    ),
)
