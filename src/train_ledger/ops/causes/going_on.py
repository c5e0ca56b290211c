"""Does a run go on where nobody sees it any more, or at other data than it stood at?

Both are pages of their own while every step is completed in time, so that nothing else tells of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from train_ledger.answer import Diagnosis, NextCommand
from train_ledger.dash import Firing
from train_ledger.ops.hosts import is_host
from train_ledger.ops.seen import Seen
from train_ledger.ops.words import step_clock
from train_ledger.run_dir import RunDir

__all__ = ["of_position", "of_silence"]

_MOST_HOSTS = 2


def of_position(seen: Seen) -> Diagnosis | None:
    """After a restart the data stand elsewhere than they stood at the same step; None where they do not."""
    firings, state = seen.fires("DataPositionRegressed"), seen.state
    if not firings:
        return None
    last = state.data_regresses[-1]
    told_in = seen.run_dir.path if state.by_logs else seen.run_dir.signals_of(min(state.ranks))
    fields = "--json --only step --fields consumed_samples,consumed_tokens"
    both = NextCommand(
        "the position at that step in each attempt",
        f"train-ledger read {shlex.quote(str(told_in))} {fields} | grep '\"step\":{last.step},'",
    )
    return Diagnosis(
        state=state.state,
        cause="data.position",
        confidence="high",
        since_step=last.step,
        since_t=last.t,
        evidence=(*_summaries(firings), step_clock(state)),
        next=(both,),
    )


def of_silence(seen: Seen) -> Diagnosis | None:
    """Nothing comes from a host, or of the whole run, though it goes on; None where all are heard."""
    firings, state = seen.fires("TrainingTelemetryLost"), seen.state
    if not firings:
        return None
    hosts = tuple(sorted({host for it in firings if (host := it.labels.get("host"))}))
    silent_s = max((it.value for it in firings if it.value is not None), default=0.0)
    return Diagnosis(
        state=state.state,
        cause="telemetry_lost",
        hosts=hosts,
        confidence="high" if hosts else "medium",
        since_t=state.t - silent_s,
        evidence=(*_summaries(firings), step_clock(state)),
        not_observed=("whether ranks of it still train: a host that is not heard may be well",) * bool(hosts),
        next=tuple(_look(seen.run_dir, hosts)),
    )


def _summaries(firings: tuple[Firing, ...]) -> tuple[str, ...]:
    return tuple(it.summary for it in firings)


def _look(run_dir: RunDir, hosts: tuple[str, ...]) -> Iterator[NextCommand]:
    for host in list(filter(is_host, hosts))[:_MOST_HOSTS]:
        yield NextCommand(f"does {host} answer?", f"ssh {shlex.quote(host)} uptime")
    here = shlex.quote(str(run_dir.path))
    yield NextCommand("which signals still arrive", f"train-ledger coverage {here}")
