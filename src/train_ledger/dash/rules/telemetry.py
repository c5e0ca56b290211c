"""Is there anything to judge by, from every host of the run?"""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.dash.rule import Firing, Recording, Rule
from train_ledger.dash.rules.recordings import age_of, of, remembered
from train_ledger.dash.rules.words import (
    AWAKE,
    QUIET_AFTER_THE_END,
    clock,
    of_run,
    place_of_run,
    place_of_run_promql,
)
from train_ledger.dash.telemetry_conditions import lost_hosts, unreadable_since_t
from train_ledger.ledger.state import RunState
from train_ledger.render import harmless

__all__ = ["TELEMETRY_RECORDINGS", "TELEMETRY_RULES"]


def _telemetry_lost(state: RunState, alerts: Alerts) -> list[Firing]:
    if state.finished:
        return []
    if (since_t := unreadable_since_t(state, alerts)) is not None:
        text = (
            f"the run cannot be read since {clock(since_t)}: {harmless(state.unreadable or '', longest=200)}"
        )
        return of_run(state, state.t - since_t, text + place_of_run(state))
    return [_of_host(state, host, since_t) for host, since_t in lost_hosts(state, alerts).items()]


def _of_host(state: RunState, host: str, since_t: float) -> Firing:
    ranks = sum(rank.host == host for rank in state.ranks.values())
    text = (
        f"{state.run}: nothing comes from host {host} ({ranks} rank{'s' if ranks > 1 else ''}) "
        f"since {clock(since_t)} while others go on{place_of_run(state)}"
    )
    return Firing({"run": state.run, "host": host}, state.t - since_t, harmless(text, longest=500))


_READ = "run_instance:train_exporter_read:timestamp"
_READ_AGE = "run_instance:train_exporter_read_age:seconds"
_LIMIT = "run:train_telemetry_limit:seconds"

_READ_NOW = """max by (run, instance) (timestamp(train_exporter_clock_seconds))
- on (run, instance) max by (run, instance) (train_exporter_poll_age_seconds)
or max by (run, instance) (timestamp(train_exporter_clock_seconds))"""

_RANKS = "run_host_instance:train_ranks:count"
_HOSTS = of("0 *", remembered(_RANKS))
_OUR_HOSTS = of("0 *", remembered("train_host_heard_timestamp_seconds"))
"""Those of which ranks have not ended; others who export the ranks do not say that."""

TELEMETRY_RECORDINGS: tuple[Recording, ...] = (
    Recording(_READ, _READ_NOW),
    Recording(
        _READ_AGE,
        f"time() - last_over_time({_READ}[$lookback])\n"
        "unless on (run, instance) run_instance:train_superseded:attempt",
    ),
    Recording(_RANKS, 'count by (run, host, instance) (train_rank_info{host!=""})'),
    Recording(_LIMIT, "clamp_min(run:train_stall_threshold:seconds, $telemetry_lost_s)"),
    Recording(
        "run_host:train_heard_age:seconds",
        of("min by (run, host)", age_of("train_host_heard_timestamp_seconds")),
    ),
    Recording(
        "run_host:train_read_age:seconds",
        of(
            "min by (run, host)",
            of("", f"{_OUR_HOSTS}\nor on (run) {_HOSTS}")
            + f"\n+ on (run, instance) group_left () {_READ_AGE}",
        ),
    ),
    Recording(
        "run:train_newest_step_age:seconds",
        of("min by (run)", age_of("train_host_stepped_timestamp_seconds")),
    ),
    Recording(
        "run:train_known_to_stand:bool",
        of("max by (run)", remembered('train_run_state{state=~"stalled|escalated|stopped"}')),
    ),
)

_OTHERS_STEP = f"""run_host:train_heard_age:seconds
and on (run, host) (
  (run_host:train_heard_age:seconds - on (run) group_left () run:train_newest_step_age:seconds)
  > on (run) group_left () {_LIMIT}
)"""

_OTHERS_ARE_READ = f"""run_host:train_read_age:seconds > on (run) group_left () {_LIMIT}
unless on (run, host) (run_host:train_heard_age:seconds <= on (run) group_left () {_LIMIT})
and on (run) (min by (run) ({_READ_AGE}) <= $telemetry_lost_s)"""

_NOBODY_READS = f"""min by (run) ({_READ_AGE}) > on (run) {_LIMIT}
unless on (run) (run:train_known_to_stand:bool == 1)"""

TELEMETRY_RULES: tuple[Rule, ...] = (
    Rule(
        name="TrainingTelemetryLost",
        level="page",
        promql=of("", f"{_OTHERS_STEP}\nor {of('', _OTHERS_ARE_READ)}\nor {of('', _NOBODY_READS)}")
        + QUIET_AFTER_THE_END
        + AWAKE,
        summary="{{ $labels.run }}: nothing {{ if $labels.host }}comes from host {{ $labels.host }} while "
        "others go on{{ else }}is heard of the run, and it did not end{{ end }}, for "
        "{{ $value | humanizeDuration }}" + place_of_run_promql(),
        runbook="trainingtelemetrylost",
        check=_telemetry_lost,
        keep_firing_for_s="keep_firing_s",
        labels=("run", "host"),
    ),
)
