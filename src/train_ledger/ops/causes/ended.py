"""Is it told that the run has fallen, or falls again and again, while its state still waits?

A state goes by its limits: for half an hour a run may start. What a rank raised, its launcher's table of who
failed, and its lines of restarts, tell sooner.
"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.answer import Diagnosis
from train_ledger.ledger import RunState
from train_ledger.ops.causes.first import with_first
from train_ledger.ops.seen import Seen
from train_ledger.ops.troubles import Told, first_cause
from train_ledger.ops.words import step_clock

__all__ = ["has_fallen", "may_have_fallen", "of_quick_restarts"]

_WAITING = ("starting", "restarting")
_GOES_ON = ("running", "recovering")
_CLOCKS_S = 2.0
_TOGETHER_S = 15.0
_ONE_RESTART_S = 10.0
"""The agents of several hosts tell of one restart within this."""


def may_have_fallen(seen: Seen) -> bool:
    """Whether it is worth a look: a rank raised after the run's last step, or its attempt has none yet."""
    state = seen.state
    if seen.is_hung:
        return False
    if not state.by_logs:
        return state.state in _WAITING or _has_raised_for_good(state)
    last_t = state.last_step_t if state.last_step_t is not None else float("-inf")
    raised = any(it.raised_t is not None and it.raised_t >= last_t for it in state.ranks.values())
    return state.state in _WAITING or (state.state in _GOES_ON and raised)


def _has_raised_for_good(state: RunState) -> bool:
    """A rank's own word that nobody caught its exception, some time ago: others would have told theirs.

    Ranks that ran into one thing do so within moments; who is looked at before may be one of all.
    """
    raised_t = min((it.raised_t for it in state.ranks.values() if it.raised_t is not None), default=None)
    if raised_t is None or state.state not in (*_WAITING, *_GOES_ON):
        return False
    last_t = state.last_step_t if state.last_step_t is not None else raised_t
    return last_t <= raised_t + _CLOCKS_S and state.t - raised_t >= _TOGETHER_S


def has_fallen(seen: Seen, told: Told) -> bool:
    """Whether somebody fell by itself, and by logs, too, that ranks ended and no start or step follows.

    Or watchdogs gave up what they had waited for in this attempt: they do before the limit of a start does.
    """
    if _waited_in_vain(seen, told):
        return True
    if not seen.state.by_logs:
        first = first_cause(told.within(seen.since_t), seen.world)
        return _has_raised_for_good(seen.state) and first is not None and not first.is_sign
    alive_t = max((t for t in (told.last_step_t, told.last_start_t) if t is not None), default=None)
    is_over = told.over_t is not None and (alive_t is None or alive_t <= told.over_t)
    first = first_cause(told.within(seen.since_t), seen.world) if is_over else None
    return first is not None and not first.is_sign


def _waited_in_vain(seen: Seen, told: Told) -> bool:
    """By logs the first line that tells a time may be the watchdog's own: what counts there is that no step
    follows."""
    waits = [it for it in told.troubles if it.kind == "watchdog_timeout" and it.t is not None]
    if seen.state.by_logs:
        return any(told.last_step_t is None or told.last_step_t <= (it.t or 0.0) for it in waits)
    since_t = (seen.stands_since_t or 0.0) - _CLOCKS_S
    return any((it.t or 0.0) - (it.waited_s or 0.0) >= since_t for it in waits)


def of_quick_restarts(seen: Seen, told: Told) -> Diagnosis | None:
    """The diagnosis of a launcher that began again and again without a step; None where it did not."""
    alerts, state = seen.config.alerts, seen.state
    after_t = max(state.last_step_t or float("-inf"), state.t - alerts.restart_loop_window_s)
    begun: list[float] = []
    for t in told.restarts_t:
        if t > after_t and (not begun or t - begun[-1] > _ONE_RESTART_S):
            begun.append(t)
    if len(begun) < alerts.restart_loop_count:
        return None
    told_of = f"{len(begun)} restarts within {begun[-1] - begun[0]:.0f} s, and no step after any of them"
    found = Diagnosis(
        state=state.state,
        cause="restart_loop",
        confidence="medium",
        since_step=state.step,
        evidence=(told_of, step_clock(state)),
        not_observed=told.not_read,
    )
    first = first_cause(told.within(seen.since_t), seen.world)
    if first is None:
        return found
    ranks = () if first.is_sign else first.ranks
    hosts = () if first.is_sign or ranks else first.hosts
    since_t = first.t if first.t is not None else begun[0]
    return replace(with_first(found, first), ranks=ranks, hosts=hosts, since_t=since_t)
