"""What does an answer say besides its cause: where, at what price, what was not seen, and what to do next?"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterable
from dataclasses import replace

from train_ledger.answer import Diagnosis, HangAnswer, Impact
from train_ledger.hang import WHO_STANDS_WHERE
from train_ledger.ledger import RunState, gpu_price_per_hour, has_gpus, impact
from train_ledger.ops.causes.hang import without_contradictions
from train_ledger.ops.commands import next_commands
from train_ledger.ops.evidence.gpus_seen import gpus_named
from train_ledger.ops.places import gpus_of, hosts_of
from train_ledger.ops.seen import Seen
from train_ledger.render import ranks_in_brief

__all__ = ["answered"]

_STACKS = "train-ledger stacks"


def answered(seen: Seen, found: Diagnosis, lost_s: float | None = None) -> Diagnosis:
    """The diagnosis as people get it; `lost_s` is how long nothing was done, where that is known better."""
    state = seen.state
    if seen.stall is not None:
        found = replace(found, evidence=(seen.stall.in_words(), *found.evidence))
    told = replace(
        without_contradictions(found),
        hosts=hosts_of(state, found.ranks) or found.hosts,
        gpus=gpus_of(state, found.ranks) or gpus_named(state, found.ranks) or found.gpus,
        impact=found.impact or _impact(seen, found, lost_s),
        not_observed=tuple(dict.fromkeys(_not_observed(seen, found.not_observed))),
    )
    told = replace(told, next=(*told.next, *next_commands(seen, told)))
    return replace(told, details=_as_here(seen, told)) if isinstance(told.details, HangAnswer) else told


def _as_here(seen: Seen, told: Diagnosis) -> HangAnswer | None:
    """What the dumps advise, for this run: stacks are of its ranks, where nobody is named and some live."""
    details = told.details
    if not isinstance(details, HangAnswer):
        return None
    state, folder = seen.state, str(seen.run_dir.path)
    is_needless = bool(told.ranks or told.hosts) or state.state in ("stopped", "finished")
    kept = (it for it in details.next if not (is_needless and it.why == WHO_STANDS_WHERE))
    hosts = {it.host for it in state.ranks.values() if it.pid is not None}  # the verb finds them by these
    elsewhere = " --launcher ssh" if hosts - {None, socket.gethostname()} else ""
    stacks = f"{_STACKS} {shlex.quote(folder)}{elsewhere}"
    here = (replace(it, command=stacks) if hosts and it.command == _STACKS else it for it in kept)
    return replace(details, next=tuple(here))


def _impact(seen: Seen, found: Diagnosis, lost_s: float | None) -> Impact | None:
    state = seen.state
    if found.cause == "none" or not state.ranks:
        return None
    if state.world_size is None and any(it.speaks_for_all for it in state.ranks.values()):
        return None  # a log of all ranks does not say how many there are
    gpus = state.world_size or len(state.ranks) if has_gpus(seen.run, state.ranks.values()) else None
    price = gpu_price_per_hour(seen.run, seen.config.cost.gpu_price_per_hour)
    return impact(_lost_s(state) if lost_s is None else lost_s, gpus, price)


def _lost_s(state: RunState) -> float:
    """Seconds without a step; where the run was stopped, until then: its GPUs may be another's by now."""
    if state.state == "stopped" and state.since_t is not None:
        return max(0.0, state.stalled_for_s - (state.t - state.since_t))
    return state.stalled_for_s


def _not_observed(seen: Seen, said: tuple[str, ...]) -> Iterable[str]:
    """The first line is the reason where nothing can be told: lines were not read, or there are none."""
    state, not_read = seen.state, seen.not_read
    if not state.ranks:
        yield from [it for it in not_read if it.startswith("signals")] or [
            "no rank has written a line (signals/)"
        ]
    yield from said
    yield from not_read
    if not seen.run_dir.hardware.is_dir() and not any(line.startswith("hardware:") for line in said):
        yield "hardware: no records of GPUs, links or the kernel log in this run directory"
    if state.by_logs and state.world_size is None and seen.is_hung:
        yield "how many ranks the run has: no log tells it, and of those without a log nothing is known"
    if state.world_size is not None and len(state.ranks) < state.world_size:
        missing = sorted({*range(state.world_size)}.difference(state.ranks))
        yield f"signals of {len(missing)} of {state.world_size} ranks: {ranks_in_brief(missing)}"
