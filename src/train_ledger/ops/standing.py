"""Why does a run stand, or what has it fallen by?

Its dumps, stacks and ranks say who did not come; logs, kernels and signals what preceded it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from train_ledger.answer import Diagnosis, HangAnswer
from train_ledger.hang import REPRODUCE, reproduced_by
from train_ledger.ops.causes.ended import has_fallen, may_have_fallen, of_quick_restarts
from train_ledger.ops.causes.first import traced_back
from train_ledger.ops.causes.hang import of_hang
from train_ledger.ops.causes.hardware import with_hardware
from train_ledger.ops.evidence import gather
from train_ledger.ops.evidence.gpus_seen import with_readings
from train_ledger.ops.evidence.outside import ends_from_outside
from train_ledger.ops.found import Found
from train_ledger.ops.places import hosts_of
from train_ledger.ops.seen import Seen
from train_ledger.ops.slow.before import with_pace_before
from train_ledger.ops.troubles import Told, Trouble, fallen_t, gave_up_t, troubles_told

__all__ = ["of_fallen", "of_standing"]

_RAISED = ("exception", "oom")
_LONG_S = 1800.0
"""Longer than a watchdog and a driver wait for a GPU that does not answer, one after the other."""


def of_standing(seen: Seen) -> Found | None:
    """It stands, or has ended: who did not come, and what came before."""
    return _stands(seen, _told(seen)) if seen.is_hung or _has_dumps_or_stacks_alone(seen) else None


def of_fallen(seen: Seen) -> Found | None:
    """A rank, or its logs, tell of an end, or of a loop, for which its limits still wait."""
    if not may_have_fallen(seen):
        return None
    told = _told(seen)
    loop = of_quick_restarts(seen, told)
    if loop is not None:
        return Found(loop)
    return _stands(seen, told) if has_fallen(seen, told) else None


def _told(seen: Seen) -> Told:
    return troubles_told(seen.run_dir, seen.state, seen.config.xid, until_t=seen.at, only_now=True)


def _stands(seen: Seen, told: Told) -> Found:
    told, seen = _without_late_hardware(seen, told), _without_what_passed(seen, told)
    state, some = seen.state, told.within(seen.since_t)
    evidence = gather(
        seen.run_dir,
        seen.config,
        state,
        until_t=seen.at,
        over=_over(seen, told),
        gave_up_t=gave_up_t(some),
    )
    found = of_hang(state, evidence, seen.looked_at)
    over_t = _over_t(seen, some)
    found = with_hardware(found, evidence.known, state, evidence.has_kernel_logs, over_t)
    found = replace(found, hosts=hosts_of(state, found.ranks))
    found = with_readings(found, state, seen.config.alerts, over_t)
    traced = traced_back(seen, _reproducible(found, seen), told)
    traced = traced._replace(diagnosis=with_pace_before(seen, traced.diagnosis))
    traced = traced._replace(diagnosis=_in_a_save(seen, traced.diagnosis))
    details = traced.diagnosis.details  # of findings that are none after all nothing is drawn
    is_drawn = isinstance(details, HangAnswer) and details.findings == evidence.answer.findings
    return Found(traced.diagnosis, evidence.picture if is_drawn else None, traced.lost_s)


def _without_late_hardware(seen: Seen, told: Told) -> Told:
    """A GPU that fails when the run has stood for long is not why it does."""
    long_t = _long_t(seen)
    kept = (it for it in told.troubles if it.kind != "xid" or it.t is None or it.t <= long_t)
    return replace(told, troubles=tuple(kept))


def _long_t(seen: Seen) -> float:
    return seen.state.last_step_t + _LONG_S if seen.state.last_step_t is not None else math.inf


def _over_t(seen: Seen, some: Sequence[Trouble]) -> float | None:
    """By when it had fallen, or had stood for so long that no hardware which fails later is why (unix s)."""
    fell_t, long_t = fallen_t(some, seen.world), _long_t(seen)
    over_t = long_t if fell_t is None else min(fell_t, long_t)
    return None if math.isinf(over_t) else over_t


def _in_a_save(seen: Seen, found: Diagnosis) -> Diagnosis:
    """A save that is open beyond its limit does not end, whatever holds it up."""
    state = seen.state
    is_open = state.phase == "checkpoint_save" and state.state in ("stalled", "escalated")
    if found.cause != "unknown" or not is_open or ends_from_outside(state):
        return found
    return replace(found, cause="checkpoint_failing", confidence="medium")


def _without_what_passed(seen: Seen, told: Told) -> Seen:
    """By logs, a rank that raised, and by a later line's time did long before the run stood, went on."""
    state = seen.state
    if not state.by_logs:
        return seen
    now = {it.rank for it in told.within(seen.since_t) if it.kind in _RAISED}
    told_of = {it.rank for it in told.troubles if it.kind in _RAISED and it.rank is not None}
    past = (told_of | told.passed_ranks) - now
    cleared = {
        rank: replace(state.ranks[rank], exception=None, raised_t=None) for rank in past & {*state.ranks}
    }
    return replace(seen, state=replace(state, ranks={**state.ranks, **cleared})) if cleared else seen


def _over(seen: Seen, told: Told) -> frozenset[str]:
    """Tracebacks that it went on from, or another run's, or of clearing away."""
    places = told.places_beside(seen.since_t)
    return frozenset(os.path.normpath(seen.run_dir.path / it) for it in places)


def _has_dumps_or_stacks_alone(seen: Seen) -> bool:
    """Of a job of which nothing else is known: it hung, or nobody would have taken them."""
    return not seen.state.ranks and (seen.has_dumps or seen.has_stacks)


def _reproducible(diagnosis: Diagnosis, seen: Seen) -> Diagnosis:
    """A fault of the code is reproduced by the run's own command, where that is known."""
    if not isinstance(diagnosis.details, HangAnswer) or not diagnosis.cause.startswith("hang."):
        return diagnosis
    command = seen.run.get("restart_command")
    details = reproduced_by(diagnosis.details, command if isinstance(command, str) else None)
    commands = tuple(it for it in details.next if it.why == REPRODUCE)
    return replace(diagnosis, details=details, next=(*diagnosis.next, *commands))
