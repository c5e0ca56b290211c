"""How does what is known of the run as a whole read as Prometheus metrics?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from train_ledger.config import Alerts
from train_ledger.dash.conditions import (
    exported_due_t,
    first_started_t,
    knows_usual_interval,
    restarts_since,
    slow_saves,
)
from train_ledger.dash.field_metrics import RUN_FIELDS, field_help
from train_ledger.dash.metric_text import family, labels
from train_ledger.dash.rank_metrics import Member
from train_ledger.fields import FIELDS
from train_ledger.ledger.state import STATES, RunState

__all__ = ["run_metrics"]

_Value = tuple[str, str, str, float | None]
"""A metric's name, kind and help, and its value, where there is one."""


def run_metrics(
    state: RunState, members: Sequence[Member], alerts: Alerts, *, ages: bool = True
) -> Iterator[str]:
    """The families; without `ages` none with a time from which an age could be reckoned."""
    run = labels(run=state.run)
    for name, kind, help, value in _values(state, members, alerts):
        if value is not None and (ages or not name.endswith("_timestamp_seconds")):
            yield family(name, kind, help, [(run, value)])
    states = ((labels(run=state.run, state=name), float(name == state.state)) for name in STATES)
    yield family("train_run_state", "gauge", "1 for the state in which the run is, 0 for the others.", states)


def _values(state: RunState, members: Sequence[Member], alerts: Alerts) -> Iterator[_Value]:
    written = {name: _largest(members, name) for name in RUN_FIELDS}
    yield from _of_steps(state)
    yield from _of_starts(state, written)
    yield from _of_saves(state, written, alerts)
    yield from _of_fields(state, written)


def _of_steps(state: RunState) -> Iterator[_Value]:
    yield "train_step_time_seconds_p50", "gauge", "Median of the steady step times.", state.p50_step_time_s
    yield (
        "train_stall_threshold_seconds",
        "gauge",
        "After this time without a completed step the run counts as stalled, in the phase it is in now.",
        state.stall_threshold_s,
    )


def _of_starts(state: RunState, written: Mapping[str, float | None]) -> Iterator[_Value]:
    attempt_t = state.attempts[-1].started_t if state.attempts else None
    restarts = max(float(restarts_since(state, -math.inf)), written["restart_total"] or 0.0)
    yield (
        "train_run_finished",
        "gauge",
        "1 once the run, or all of it that is followed here, has come to its end.",
        None if state.is_part and not state.ranks else float(state.finished),
    )
    yield (
        "train_run_started_timestamp_seconds",
        "gauge",
        "When the first attempt began.",
        first_started_t(state),
    )
    yield "train_attempt_started_timestamp_seconds", "gauge", "When this attempt began.", attempt_t
    yield "train_restart_total", "counter", "Starts of the run after its first.", restarts


def _of_saves(state: RunState, written: Mapping[str, float | None], alerts: Alerts) -> Iterator[_Value]:
    saves = state.checkpoints
    failed = max(float(saves.failed_before + len(saves.failed)), written["ckpt_failed_total"] or 0.0)
    duration_s = saves.durations_s[-1] if saves.durations_s else written["ckpt_duration_s"]
    yield "train_ckpt_failed_total", "counter", "Checkpoint saves that failed.", failed
    yield (
        "train_ckpt_last_success_timestamp_seconds",
        "gauge",
        "When the last checkpoint was saved.",
        saves.saved_t[-1] if saves.saved_t else None,
    )
    yield "train_ckpt_duration_s", "gauge", "How long the last checkpoint took to save.", duration_s
    yield (
        "train_ckpt_due_timestamp_seconds",
        "gauge",
        "By when the next checkpoint should be saved, going by the run's own intervals; NaN while a run "
        "stands, which owes none.",
        _due_t(state, alerts),
    )
    yield (
        "train_ckpt_slow_saves",
        "gauge",
        "How many of the newest saves in a row, two at most, took far longer than usual.",
        float(slow_saves(state, alerts)),
    )


def _of_fields(state: RunState, written: Mapping[str, float | None]) -> Iterator[_Value]:
    """What the ledger works out itself, and a launcher may write too."""
    effective, baseline = written["effective_fraction"], state.speed.mfu_baseline
    if effective is None and state.productive:
        effective = state.productive.fraction
    if baseline is None:
        baseline = written["mfu_baseline"]
    for name, told in (("effective_fraction", effective), ("mfu_baseline", baseline)):
        yield FIELDS[name].metric, "gauge", field_help(FIELDS[name]), told


def _due_t(state: RunState, alerts: Alerts) -> float | None:
    """Never left out once it was there: what a dead exporter said last would come back."""
    due_t = exported_due_t(state, alerts)
    return math.nan if due_t is None and knows_usual_interval(state) else due_t


def _largest(members: Sequence[Member], name: str) -> float | None:
    """What the ranks wrote for a fact of the run; the largest, where they differ."""
    values = [
        value for m in members if (value := m.state.values.get(name)) is not None and math.isfinite(value)
    ]
    return max(values, default=None)
