"""What, in the state of a run, is a condition that somebody may have to know of?

Each condition is computed here once, for both who ask: the embedded judge and the exporter, whose gauges
Prometheus compares. Only so can the two judges not disagree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from train_ledger.config import Alerts
from train_ledger.ledger.attempts import restarts
from train_ledger.ledger.pace import told_s
from train_ledger.ledger.state import Attempt, DataRegress, RankState, RunState

__all__ = [
    "checkpoint_due_t",
    "effective_fraction",
    "exported_due_t",
    "first_started_t",
    "knows_usual_interval",
    "last_loss_finite",
    "lost_ranks",
    "recent_data_regresses",
    "recent_failed_saves",
    "restarts_since",
    "save_ratio",
    "silent_ranks",
    "slow_saves",
]

_FEWEST_SAVES = 3
"""Fewer earlier saves than this are no "usual"."""

_SILENT_S = 600.0
"""After such a silence the figures of a rank's last step are no figures of now."""

_READ_LATER_S = 30.0
"""More than lies between two looks of an exporter, also on a node that is busy."""

_STEPS_MOVE = frozenset({"running", "recovering", "numeric_fault", "hardware_fault"})


def last_loss_finite(rank: RankState) -> bool:
    """Whether the last step of this rank ended with a loss that is a number."""
    return rank.nonfinite_step is None or rank.nonfinite_step != rank.step


def lost_ranks(state: RunState, alerts: Alerts) -> dict[int, float]:
    """Ranks whose process is gone, each with the time since when.

    A process was seen dead, or its rank fell silent while other ranks on its host went on completing steps
    for longer than either limit. Ranks that said `run_end` have only ended.
    """
    lost = {rank.rank: rank.gone_t for rank in _members(state) if rank.gone_t is not None}
    return lost | {rank.rank: t for rank, t in _silent(state, alerts) if rank.rank not in lost}


def silent_ranks(state: RunState) -> frozenset[int]:
    """Ranks of which nothing was heard for 10 min, and for longer than the limit that holds now."""
    longest_s = max(_SILENT_S, state.stall_threshold_s)
    return frozenset(
        rank.rank
        for rank in state.ranks.values()
        if rank.heard_t is not None and state.t - rank.heard_t > longest_s
    )


def _members(state: RunState) -> list[RankState]:
    return [rank for rank in state.ranks.values() if not rank.ended]


def _silent(state: RunState, alerts: Alerts) -> Iterable[tuple[RankState, float]]:
    if state.by_logs:
        return
    newest: dict[str, RankState] = {}
    for rank in _members(state):
        if rank.host is not None and rank.step_t is not None:
            known = newest.setdefault(rank.host, rank)
            newest[rank.host] = max(known, rank, key=lambda it: it.step_t or 0.0)
    for rank in _members(state):
        if rank.host not in newest or rank.step_t is None or rank.heard_t is None:
            continue
        limit_s = _longest_silence_s(rank, state, alerts)
        if _went_on_s(newest[rank.host], rank, rank.heard_t, state) > limit_s:
            yield rank, rank.heard_t


def _went_on_s(other: RankState, silent: RankState, heard_t: float, state: RunState) -> float:
    """For how long another rank has gone on since a silent one was heard.

    By the steps that it took since then where the two go in step: a pause of both – a checkpoint – is no time
    in which it went on, and a rank whose lines come some seconds late is not gone.
    """
    passed_s = (other.step_t or 0.0) - heard_t
    if other.step is None or silent.step is None or state.p50_step_time_s is None:
        return passed_s
    ahead = other.step - silent.step
    return min(passed_s, ahead * state.p50_step_time_s) if ahead >= 0 else passed_s


def _longest_silence_s(rank: RankState, state: RunState, alerts: Alerts) -> float:
    """Ranks that do not wait for each other may take steps of very different length."""
    own_s = told_s(rank.values.get("step_time_s")) or 0.0
    return max(alerts.process_gone_s, state.stall_threshold_s, alerts.stall_factor * own_s)


def restarts_since(state: RunState, t: float) -> int:
    """How many starts of the run after its first began later than `t`.

    Counted by the attempts' numbers as far as `ledger.restarts` believes them, so that one whose own lines
    were never seen counts too. The run's first attempt is 0, whether or not it was seen.
    """
    began = state.attempts
    if not began or began[0].number > 0:
        began = (Attempt(0, -math.inf), *began)
    return restarts(began) - restarts([attempt for attempt in began if attempt.started_t <= t])


def first_started_t(state: RunState) -> float | None:
    """When the earliest attempt that is known began."""
    return min((attempt.started_t for attempt in state.attempts), default=None)


def recent_failed_saves(state: RunState, alerts: Alerts) -> int:
    """Failed checkpoint saves within the window."""
    return sum(failed.t > state.t - alerts.checkpoint_window_s for failed in state.checkpoints.failed)


def slow_saves(state: RunState, alerts: Alerts) -> int:
    """How many of the newest saves in a row, two at most, took far longer than earlier ones usually did."""
    durations = state.checkpoints.durations_s
    earlier, newest = durations[:-2], durations[-2:]
    if len(earlier) < _FEWEST_SAVES:
        return 0
    limit_s = max(alerts.checkpoint_slow_floor_s, alerts.checkpoint_slow_factor * median(earlier))
    if newest[-1] <= limit_s:
        return 0
    return 2 if newest[0] > limit_s else 1


def save_ratio(state: RunState) -> float | None:
    """How many times as long as usual the newest save took; None where no usual is known."""
    durations = state.checkpoints.durations_s
    earlier = durations[:-1]
    usual_s = median(earlier) if len(earlier) >= _FEWEST_SAVES else 0.0
    return durations[-1] / usual_s if usual_s > 0 else None


def knows_usual_interval(state: RunState) -> bool:
    """Whether there were saves enough to say how far apart they usually are."""
    return len(state.checkpoints.saved_t) > _FEWEST_SAVES


def checkpoint_due_t(state: RunState, alerts: Alerts, *, ahead_s: float = 0.0) -> float | None:
    """By when the next successful save should have come; None where that cannot be said.

    Twice the usual interval (by the configured factor, over the configured floor) after the last success, or
    after the first step of this attempt where that was later. A run that stands still does not owe a
    checkpoint: once that time has passed it is told only when a step was completed after it, and as many
    steps as take the usual interval were done since the last success. So neither a hang between frequent
    checkpoints nor the first steps after it are told as a missed checkpoint.

    `ahead_s` is how much later than `state.t` it may be compared with a clock.
    """
    saved_t = state.checkpoints.saved_t
    if state.state not in _STEPS_MOVE or not knows_usual_interval(state):
        return None
    usual_s = median(later - earlier for earlier, later in pairwise(saved_t))
    resumed_t = state.attempts[-1].first_step_t if state.attempts else None
    patience_s = max(alerts.checkpoint_missed_floor_s, alerts.checkpoint_missed_factor * usual_s)
    due_t = max(saved_t[-1], resumed_t or saved_t[-1]) + patience_s
    return due_t if state.t + ahead_s <= due_t or _went_on(state, due_t, usual_s) else None


def exported_due_t(state: RunState, alerts: Alerts) -> float | None:
    """The same for who reads it later, against the clock of then: between two looks nobody takes it back."""
    return checkpoint_due_t(state, alerts, ahead_s=_READ_LATER_S)


def _went_on(state: RunState, due_t: float, usual_s: float) -> bool:
    """Whether a run did more steps than it usually does from save to save, the last of them after `due_t`."""
    saved_step, each_s = state.checkpoints.saved_step, state.p50_step_time_s
    if state.last_step_t is None or state.last_step_t <= due_t:
        return False
    if state.step is None or saved_step is None or each_s is None or state.step < saved_step:
        return True
    return (state.step - saved_step) * each_s >= usual_s


def effective_fraction(state: RunState, alerts: Alerts) -> float | None:
    """The share of the window that brought the run further; None while too little of it is known.

    The launcher's own figure does not come in: of a run that is dead it says nothing new.
    """
    known = state.productive
    if known is None or state.t - known.since_t < alerts.effective_from_age_s:
        return None
    return known.fraction


def recent_data_regresses(state: RunState, alerts: Alerts) -> list[DataRegress]:
    """Restarts at other data, for as long as a failed save is told; oldest first."""
    since_t = state.t - alerts.checkpoint_window_s
    return [regress for regress in state.data_regresses if regress.t > since_t]
