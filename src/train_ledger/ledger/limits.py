"""For how long may no step be completed before the run counts as stalled?

Outside the phases that take long by nature: max(floor, factor × the usual time between two steps). While such
a phase is open on any rank that has come as far as the run, the phase's limit, since in synchronous training
all others wait for that rank; a rank that hangs outside of them raises nothing. A phase that ended is over:
the limit starts again at its end. Before the first step the whole start has its limit, and where it goes
through long phases that say when they end, each of them has its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from statistics import median, median_high
from typing import NamedTuple

from train_ledger.config import Alerts
from train_ledger.ledger.phases import RAISING_PHASES
from train_ledger.ledger.rank import RankFold

__all__ = ["StallLimit", "p50_step_s", "stall_limit"]

_NEXT_STEP = 1

_PART_OF_START = 1 / 3
"""Phases that took less of the limit of start-up lengthen it by nothing; so long may be none between them."""


class StallLimit(NamedTuple):
    """`threshold_s` is counted from the last completed step, or from the start of the attempt before one."""

    threshold_s: float
    phase: str | None = None
    phase_since_t: float | None = None


class _OpenPhase(NamedTuple):
    limit_s: float
    name: str
    since_t: float


def p50_step_s(ranks: Iterable[RankFold]) -> float | None:
    """The median over ranks of each one's median over its last 20 steady steps.

    So neither one rank with odd figures, nor one that left, nor one whose step count runs off moves it.
    """
    steady = [rank.pace.steady_step_s for rank in ranks if rank.pace.steady_step_s is not None]
    return median(steady) if steady else None


def stall_limit(
    ranks: list[tuple[RankFold, float]],
    tellers: Collection[RankFold],
    step: int | None,
    last_step_t: float | None,
    began_t: float | None,
    alerts: Alerts,
) -> StallLimit:
    """The limit that holds now; `ranks` are those of the current attempt, each with its clock's lead (s).

    `tellers` are those of them by whose lines the run's step is known; of another one what it told since the
    last step counts. The attempt began at `began_t`, where that is known.
    """
    here = [
        (rank, lead_s)
        for rank, lead_s in ranks
        if (_came_as_far(rank, step) if rank in tellers else _spoke_since(rank, lead_s, last_step_t))
    ]
    phase = _open_phase(here, alerts, {rank for rank, _ in ranks})
    since_t = began_t if last_step_t is None else last_step_t
    excused = [rank.phases.excused_t - lead_s for rank, lead_s in here if rank.phases.excused_t is not None]
    excused_s = 0.0 if since_t is None else max(0.0, max(excused, default=since_t) - since_t)
    if last_step_t is None:
        part_s = _PART_OF_START * alerts.start_up_limit_s
        to_come_s = phase.limit_s if phase else part_s
        limit_s = max(alerts.start_up_limit_s, to_come_s + (excused_s if excused_s > part_s else 0.0))
        limit_s = max([limit_s, *(rank.reported_limit_s(limit_s, alerts.stall_factor) for rank, _ in ranks)])
    else:
        between_s = max(_between_steps_s(tellers, alerts), _pause_s(ranks, alerts))
        limit_s = excused_s + (phase.limit_s if phase else between_s)
    return StallLimit(limit_s, phase.name if phase else None, phase.since_t if phase else None)


def _came_as_far(rank: RankFold, step: int | None) -> bool:
    """Whether what this rank does now can be what the run waits for: its step count stands with the run's."""
    if step is None:
        return True
    own = rank.step if rank.step is not None else -1
    return own + max(rank.pace.stride, _NEXT_STEP) >= step


def _spoke_since(rank: RankFold, lead_s: float, t: float | None) -> bool:
    return t is None or (rank.heard_t is not None and rank.heard_t - lead_s >= t)


def _pause_s(ranks: list[tuple[RankFold, float]], alerts: Alerts) -> float:
    """For how long logs are silent without saying so beforehand."""
    pauses_s = [max(rank.written_every_s, rank.phases.unannounced_s) for rank, _ in ranks]
    return alerts.stall_factor * max(pauses_s, default=0.0)


def _between_steps_s(ranks: Collection[RankFold], alerts: Alerts) -> float:
    p50_s = p50_step_s(ranks)
    stride = median_high([rank.pace.stride for rank in ranks if rank.step is not None])
    if p50_s is None:  # too early: the first steps, compiling included, stand for the usual ones
        warm_up_s = median([rank.pace.warm_up_s for rank in ranks if rank.step is not None])
        if warm_up_s <= 0:  # a log whose first line tells of a step nobody saw begin
            return alerts.start_up_limit_s
        warm_up_s *= alerts.stall_factor * stride
        return max(alerts.stall_floor_s, min(alerts.start_up_limit_s, warm_up_s))
    return max(alerts.stall_floor_s, alerts.stall_factor * p50_s * stride)


def _open_phase(
    here: list[tuple[RankFold, float]], alerts: Alerts, ranks: set[RankFold]
) -> _OpenPhase | None:
    since: dict[str, float] = {}
    for rank, lead_s in here:
        for name, since_t in rank.phases.open.items():
            if name in RAISING_PHASES and not rank.process.ended:
                since[name] = min(since_t - lead_s, since.get(name, since_t - lead_s))
    phases = [_OpenPhase(_limit_s(name, alerts, ranks), name, since_t) for name, since_t in since.items()]
    return max(phases, default=None)


def _limit_s(phase: str, alerts: Alerts, ranks: set[RankFold]) -> float:
    if phase in ("start_up", "compile"):
        return alerts.start_up_limit_s
    usual_s = max(rank.phases.usual_s(phase) for rank in ranks)
    if phase == "evaluation":
        return max(alerts.evaluation_floor_s, alerts.evaluation_factor * usual_s)
    return max(alerts.checkpoint_floor_s, alerts.checkpoint_factor * usual_s)
