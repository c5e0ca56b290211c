"""Which figures of the run's speed hold now?

For both judges: the embedded one compares them, and the exporter makes gauges of them, which Prometheus
compares. They are as of the newest steps, so nothing of them moves while the run saves, evaluates or
compiles; of a run that stands still or has ended there are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from train_ledger.config import Alerts
from train_ledger.ledger.state import RankState, RunState
from train_ledger.ledger.trends import Fragmented, Outlier, Spike, StepTimes

__all__ = [
    "SpeedFigures",
    "data_waits",
    "fragmented_ranks",
    "grad_norm_spike",
    "mfu_of_baseline",
    "rank_outliers",
    "speed_figures",
    "step_times",
]

_LEAST_OF_BASELINE = 0.02
"""No run goes on at less: one of the two is a fraction, and the other is in percent."""


class SpeedFigures(NamedTuple):
    """All that is shown of the run's speed."""

    step_times: StepTimes | None
    mfu_of_baseline: float | None
    data_waits: Mapping[int, float]
    fragmented: Mapping[int, Fragmented]
    spike: Spike | None
    outliers: tuple[Outlier, ...]


def speed_figures(state: RunState, alerts: Alerts) -> SpeedFigures:
    """All of them."""
    return SpeedFigures(
        step_times(state, alerts),
        mfu_of_baseline(state, alerts),
        data_waits(state, alerts),
        fragmented_ranks(state, alerts),
        grad_norm_spike(state, alerts),
        rank_outliers(state),
    )


def step_times(state: RunState, alerts: Alerts) -> StepTimes | None:
    """The steps of the last minutes beside those of an earlier hour."""
    times = state.speed.step_times
    return times if times is not None and _is_of_now(state, times.t, alerts.step_recent_s) else None


def mfu_of_baseline(state: RunState, alerts: Alerts) -> float | None:
    """The best part of the last half hour's mfu, as a share of what the run calls usual."""
    mfu, baseline, t = state.speed.mfu, state.speed.mfu_baseline, state.speed.mfu_t
    if mfu is None or baseline is None or t is None or not _is_of_now(state, t, alerts.mfu_window_s):
        return None
    share = mfu / baseline
    return share if share >= _LEAST_OF_BASELINE else None


def data_waits(state: RunState, alerts: Alerts) -> dict[int, float]:
    """What each rank waited for data in the last minutes, as a share of its steps."""
    return {
        rank.rank: rank.data_wait_fraction
        for rank in _living(state, alerts.data_wait_window_s)
        if rank.data_wait_fraction is not None
    }


def fragmented_ranks(state: RunState, alerts: Alerts) -> dict[int, Fragmented]:
    """Ranks whose memory fell to pieces within the window."""
    return {
        rank.rank: rank.fragmented
        for rank in _living(state, alerts.fragmentation_window_s)
        if rank.fragmented is not None
    }


def grad_norm_spike(state: RunState, alerts: Alerts) -> Spike | None:
    """The last spike, for as long as one is told."""
    spike = None if state.finished else state.speed.spike
    return spike if spike is not None and state.t - spike.t < alerts.loss_window_s else None


def rank_outliers(state: RunState) -> tuple[Outlier, ...]:
    """Ranks whose own work stands out while the run goes on."""
    moves = not state.finished and state.stalled_for_s <= state.stall_threshold_s
    return state.speed.outliers if moves else ()


def _living(state: RunState, window_s: float) -> list[RankState]:
    return [
        rank
        for rank in state.ranks.values()
        if not rank.ended and rank.step_t is not None and _is_of_now(state, rank.step_t, window_s)
    ]


def _is_of_now(state: RunState, t: float, window_s: float) -> bool:
    """A checkpoint or an evaluation may lie between the last step and now, but no stall."""
    return not state.finished and state.t - t <= max(window_s, state.stall_threshold_s)
