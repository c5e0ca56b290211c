"""What is wrong with a run, by its series alone?

In the order in which `diagnose` asks: a restart loop, a stall and who is gone, hardware that failed, a loss
that is not finite, saves that fail, then what makes it slow. Nobody is named by a step alone: who is behind
is told, and may be a victim.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from train_ledger.answer import Diagnosis, HangAnswer, NextCommand
from train_ledger.config import Config
from train_ledger.dash import RULES
from train_ledger.hang import first_fallen
from train_ledger.ledger import RunState, impact
from train_ledger.ops.causes.hang import of_hang
from train_ledger.ops.evidence import HangEvidence, knowledge_of
from train_ledger.ops.evidence.gpus_seen import gpus_named, of_hardware, with_readings
from train_ledger.ops.hosts import is_host
from train_ledger.ops.prometheus.slow import of_gauges
from train_ledger.ops.words import step_clock
from train_ledger.render import duration, harmless, ranks_in_brief
from train_ledger.run_dir import RunDir
from train_ledger.sources.prometheus import RunSeries

__all__ = ["diagnose_state"]

_HUNG = ("stalled", "escalated", "stopped")
_NOT_TOLD = "stacks and Flight Recorder dumps: Prometheus has none; they are taken on the hosts"
_MOST_HOSTS = 4


def diagnose_state(
    series: RunSeries, state: RunState, config: Config, shown: str, run_dir: RunDir | None = None
) -> Diagnosis:
    """The one cause for a state that was made of these series; `shown` is the address of Prometheus."""
    found = _found(series, state, config)
    ranks = [state.ranks[rank] for rank in found.ranks if rank in state.ranks]
    hosts = tuple(sorted({it.host for it in ranks if it.host}))
    gpus = tuple(sorted({it.uuid for it in ranks if it.uuid})) or gpus_named(state, found.ranks)
    found = replace(
        found,
        hosts=hosts or found.hosts,
        gpus=gpus or found.gpus,
        evidence=tuple(harmless(line, longest=600) for line in found.evidence),
    )
    if found.cause != "none" and found.impact is None and state.stalled_for_s > state.stall_threshold_s:
        gpus_lost = len(state.ranks) if any(it.gpu is not None for it in state.ranks.values()) else None
        found = replace(found, impact=impact(state.stalled_for_s, gpus_lost, config.cost.gpu_price_per_hour))
    return replace(
        found,
        not_observed=tuple(dict.fromkeys((*found.not_observed, *_not_observed(series, state)))),
        next=tuple(dict.fromkeys((*found.next, *_next(state, found, shown, run_dir)))),
    )


def _found(series: RunSeries, state: RunState, config: Config) -> Diagnosis:
    alerts = config.alerts
    is_hung = state.state in _HUNG or (not state.finished and state.stalled_for_s > state.stall_threshold_s)
    restarts = max((it.value for it in series.grown.get("restarts", ())), default=0.0)
    if restarts >= alerts.restart_loop_count and (state.state == "stopped" or not is_hung):
        within = duration(alerts.restart_loop_window_s)
        return _plain(state, "restart_loop", f"train_restart_total: {restarts:.0f} restarts within {within}")
    if is_hung and state.ranks and not series.living:
        return _of_no_exporter(series, state)
    if is_hung:
        return _of_stall(state, config)
    if not state.finished and (failed := of_hardware(state, alerts)) is not None:
        return failed
    others = (_of_loss(series, state), _of_saves(series, state), _of_data(series, state))
    first = next((it for it in others if it is not None), None)
    return first or _of_silence(state, config) or of_gauges(series, state, alerts) or _of_no_trouble(state)


def _of_no_exporter(series: RunSeries, state: RunState) -> Diagnosis:
    """Nobody tells of a step any more: whether the run stands does not show."""
    count = len({it.labels.get("instance") for it in series.of("train_rank_info")})
    said = f"Prometheus scrapes none of the run's {count} exporters any more; told is what they said last"
    return replace(_plain(state, "telemetry_lost", said), confidence="medium", since_t=state.last_step_t)


def _plain(state: RunState, cause: str, said: str) -> Diagnosis:
    return Diagnosis(
        state=state.state,
        cause=cause,
        confidence="high",
        since_step=state.step,
        evidence=(said, step_clock(state)),
    )


def _of_stall(state: RunState, config: Config) -> Diagnosis:
    known = knowledge_of(state)
    evidence = HangEvidence(
        answer=HangAnswer(verdict="cannot_tell"), fallen=first_fallen(known, state.ranks.keys()), known=known
    )
    found = of_hang(state, evidence, ())
    found = replace(
        found,
        details=None,
        hosts=tuple(sorted({it.host for rank in found.ranks if (it := state.ranks[rank]).host})),
        not_observed=tuple(it for it in found.not_observed if not it.startswith("processes")),
        evidence=(*found.evidence, *_processes(state)),
    )
    return with_readings(found, state, config.alerts)


def _processes(state: RunState) -> Iterator[str]:
    gone = [rank for rank, it in state.ranks.items() if it.gone_t is not None]
    if gone:
        yield f"train_process_up is 0 for {ranks_in_brief(gone)} of {len(state.ranks)} ranks"
    elif state.ranks:
        yield f"train_process_up is 1, as far as exporters know processes, for {len(state.ranks)} ranks"


def _of_loss(series: RunSeries, state: RunState) -> Diagnosis | None:
    """A rank is named only where all others are as far, are more, and had no such loss."""
    bad = tuple(sorted(rank for rank, it in state.ranks.items() if it.nonfinite_total))
    if not bad or state.finished:
        return None
    others = [it for rank, it in state.ranks.items() if rank not in bad]
    by_step = max((_bad_by(series, state, rank) for rank in bad), default=0)
    named = bad if len(others) > len(bad) and all((it.step or 0) >= by_step for it in others) else ()
    now = [rank for rank in bad if state.ranks[rank].nonfinite_step is not None]
    said = f"train_loss_nonfinite_total grew on {ranks_in_brief(bad)}"
    last = (
        f"the loss of the last step is not finite on {ranks_in_brief(now)}" if now else "it is finite again"
    )
    return replace(
        _plain(state, "numeric.nan", f"{said}; {last}"),
        ranks=named,
        confidence="medium",
        since_step=None,
        not_observed=("in which step the loss was first not finite: metrics tell only that it was",),
    )


def _bad_by(series: RunSeries, state: RunState, rank: int) -> int:
    """A step by which the rank's loss had not been finite; its last, where nothing earlier is known."""
    told = [it.value for it in series.nonfinite_by if it.labels.get("rank") == str(rank)]
    return int(min(told)) if told else state.ranks[rank].step or 0


def _of_saves(series: RunSeries, state: RunState) -> Diagnosis | None:
    failed = max((it.value for it in series.grown.get("failed saves", ())), default=0.0)
    if failed > 0:
        return _plain(state, "checkpoint_failing", f"train_ckpt_failed_total grew by {max(1, round(failed))}")
    due = [series.time_of(it) for it in series.of("train_ckpt_due_timestamp_seconds") if it.value > 0]
    if due and not state.finished and state.t > max(due):
        late = duration(state.t - max(due))
        return _plain(state, "checkpoint_failing", f"no checkpoint succeeded; one was due {late} ago")
    slow = max((it.value for it in series.of("train_ckpt_slow_saves")), default=0.0)
    return (
        _plain(state, "slow.checkpoint", "two saves in a row took far longer than usual")
        if slow >= 2
        else None
    )


def _of_data(series: RunSeries, state: RunState) -> Diagnosis | None:
    if not series.grown.get("other data"):
        return None
    return _plain(
        state, "data.position", "train_data_position_regressed_total grew: it goes on at other data"
    )


def _of_silence(state: RunState, config: Config) -> Diagnosis | None:
    rule = next(rule for rule in RULES if rule.name == "TrainingTelemetryLost")
    firing = rule.check(state, config.alerts)
    if not firing:
        return None
    hosts = tuple(sorted({host for it in firing if (host := it.labels.get("host"))}))
    return replace(_plain(state, "telemetry_lost", firing[0].summary), hosts=hosts, confidence="medium")


def _of_no_trouble(state: RunState) -> Diagnosis:
    is_well = bool(state.ranks)
    return Diagnosis(
        state=state.state,
        cause="none" if is_well else "unknown",
        confidence="medium" if is_well else "low",
        evidence=(step_clock(state),),
        not_observed=() if is_well else ("ranks: no series of any rank of this run",),
    )


def _not_observed(series: RunSeries, state: RunState) -> Iterator[str]:
    yield _NOT_TOLD
    yield "phases, exceptions and the world size: no metric tells them"
    sidecars = {it.labels.get("instance", "") for it in series.of("train_rank_info")}
    dead = sorted(sidecars - series.living)
    if dead:
        who = ", ".join(map(harmless, dead))
        yield f"{who}: Prometheus scrapes it no longer; told is what it said last"
    if not state.gpus:
        yield "GPUs: no series of DCGM or of the kernel's XIDs for those of this run"
    steps = [rank for rank, it in state.ranks.items() if it.step is None]
    if steps and state.step is not None:
        yield f"steps of {ranks_in_brief(steps)}"


def _next(state: RunState, found: Diagnosis, shown: str, run_dir: RunDir | None) -> Iterator[NextCommand]:
    if found.cause == "none":
        return
    if run_dir is not None:
        here = shlex.quote(str(run_dir.path))
        yield NextCommand("who stands where, of all hosts", f"train-ledger stacks {here} --launcher ssh")
        yield NextCommand("every rank's Flight Recorder", f"train-ledger dump {here} --launcher ssh")
        return
    hosts = [host for host in _hosts_to_look_at(state, found) if is_host(host)]
    if hosts and (found.cause.startswith(("hang.", "slow.")) or found.cause == "unknown"):
        named = shlex.quote(",".join(hosts[:_MOST_HOSTS]))
        yield NextCommand(
            "where the ranks of these hosts stand", f"train-ledger stacks --launcher ssh --hosts {named}"
        )
    for host in hosts[:1] if found.cause == "hang.rank_died" else ():
        look = "sudo dmesg -T | tail -n 50"
        yield NextCommand("why its process ended", f"ssh {shlex.quote(host)} {shlex.quote(look)}")
    query = shlex.quote(f'query=ALERTS{{run="{state.run}",alertstate="firing"}}')
    yield NextCommand(
        "which alerts fire", f"curl -sG {shlex.quote(f'{shown}/api/v1/query')} --data-urlencode {query}"
    )


def _hosts_to_look_at(state: RunState, found: Diagnosis) -> list[str]:
    """Those of the culprits, of ranks that are behind, else all."""
    late = [it for it in state.ranks.values() if it.step is not None and it.step < (state.step or 0)]
    behind = [it.host for it in late if it.host] if 2 * len(late) < len(state.ranks) else []
    every = sorted({it.host for it in state.ranks.values() if it.host})
    return list(dict.fromkeys(found.hosts or behind or every))
