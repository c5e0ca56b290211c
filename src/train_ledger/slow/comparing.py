"""Which earlier steps are the newest ones to be held against, and when did they become slower?

The run's own earlier steady state: what was before the change, which lies within what was read, at a restart,
or anywhere before in the run. Or what was named: steps, or another run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.change import FEWEST, PARTS, changes_of
from train_ledger.slow.history import History
from train_ledger.slow.suspects.view import Onset, View, step_times
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Floats

__all__ = ["NEWEST", "Baseline", "compared", "of_baseline", "since_step"]

NEWEST = 400
_BEFORE_STEPS = 200
_FEWEST_STEPS = 10
_SLOWER = 1.05
_QUARTER_SLOWER = 1.02


@dataclass(frozen=True, slots=True)
class Baseline:
    """Steps that were named to compare with, and what they are called."""

    table: StepTable
    words: str


def of_baseline(newest: StepTable, baseline: Baseline, alerts: Alerts) -> View:
    """The newest steps beside those that were named."""
    view = _view(newest, baseline.table, baseline.words, alerts)
    found = onset_in(newest)
    return replace(view, onset=found) if view.slower and found is not None else view


def since_step(history: History, newest: StepTable, step: int, alerts: Alerts) -> View:
    """The newest steps from `step` on beside those before it."""
    before = history.until(newest.attempt, step - 1, NEWEST)
    now = newest.between(step, None)
    if not len(now.steps):
        now = newest
    view = _view(now, before if len(before.steps) else None, _steps_in_words(before), alerts)
    return replace(view, onset=_at(now, step, (step, step)))


def compared(history: History, newest: StepTable, alerts: Alerts) -> View:
    """The newest steps beside the run's own earlier ones."""
    return (
        _within(newest, alerts)
        or _after_restart(newest, alerts)
        or _over_the_run(history, newest, alerts)
        or _halves(newest, alerts)
    )


def onset_in(table: StepTable) -> Onset | None:
    """Where the steps of a table became slower, and stayed so."""
    return next(_onsets(table, ("step_time_s",)), None)


def _onsets(table: StepTable, names: Sequence[str]) -> Iterator[Onset]:
    changes = changes_of(table)
    for name in names:
        found = changes.get(name)
        if found is not None and found.rise > 0:
            yield replace(_at(table, found.step, found.between), shape=found.shape)


def _within(newest: StepTable, alerts: Alerts) -> View | None:
    """A change within what was read: of the step, or of a part where what came and went hides that."""
    onsets = _onsets(newest, PARTS)
    return next((view for it in onsets if (view := _cut_at(newest, it, alerts)) is not None), None)


def _cut_at(newest: StepTable, found: Onset, alerts: Alerts) -> View | None:
    """The steps on both sides of a change; None where they did not become slower by it."""
    before, now = newest.between(None, found.between[0] - 1), newest.between(found.step, None)
    if found.shape == "ramp":
        now = now.newest(max(2 * _FEWEST_STEPS, len(now.steps) // 4))
    if not (_has_steps(before) and _has_steps(now, FEWEST)):
        return None
    view = _view(now, before, _steps_in_words(before), alerts)
    return replace(view, onset=found) if view.slower else None


def _after_restart(newest: StepTable, alerts: Alerts) -> View | None:
    """Slower from a restart on: all steps of this attempt are, beside the end of the one before."""
    before = newest.earlier
    if before is None or not (_has_steps(before) and _has_steps(newest)):
        return None
    if newest.world_size != before.world_size or len(before.places) != len(newest.places):
        return None
    words = f"the attempt before, {_steps_in_words(before)}"
    view = _view(newest, before, words, alerts)
    if not view.slower:
        return None
    first = int(newest.steps[0])
    return replace(view, onset=_at(newest, first, (first, first)))


def _over_the_run(history: History, newest: StepTable, alerts: Alerts) -> View | None:
    """A change before what was read; None where there is none."""
    found = history.since_when(newest)
    if found is None or found.rise <= 0:
        return None
    before = history.until(newest.attempt, found.between[0] - 1, _BEFORE_STEPS)
    if before.attempt != newest.attempt or not _has_steps(before):
        return None
    view = _view(newest, before, _steps_in_words(before), alerts)
    if not view.slower:
        return None
    t = _time_of(history.until(newest.attempt, found.step, 1))
    return replace(view, onset=Onset(found.step, found.between, t, found.shape))


def _halves(newest: StepTable, alerts: Alerts) -> View:
    """A run that is short and as ever: its first half is what its second is compared with."""
    middle = len(newest.steps) // 2
    first, second = newest.columns(slice(0, middle)), newest.columns(slice(middle, None))
    if not (_has_steps(first) and _has_steps(second)):
        return View(newest, None, "", alerts)
    return replace(_view(second, first, _steps_in_words(first), alerts), slower=False)


def _view(now: StepTable, before: StepTable | None, words: str, alerts: Alerts) -> View:
    view = View(now, before if before is not None and _has_steps(before) else None, words, alerts)
    return replace(view, slower=_is_slower(view))


def _is_slower(view: View) -> bool:
    """By more than the noise: three quarters of the newest steps are longer than earlier ones mostly are."""
    if view.before is None or view.before_s is None or not view.now_s >= _SLOWER * view.before_s:
        return False
    now, before = (_told(step_times(table)) for table in (view.now, view.before))
    median_is = float(np.median(now)) >= _QUARTER_SLOWER * float(np.median(before))
    return bool(median_is or float(np.mean(now > 1.5 * np.median(before))) >= 0.1)


def _told(series: Floats) -> Floats:
    told: Floats = series[np.isfinite(series)]
    return told


def _has_steps(table: StepTable, fewest: int = _FEWEST_STEPS) -> bool:
    return int(np.isfinite(step_times(table)).sum()) >= fewest


def _steps_in_words(table: StepTable) -> str:
    return f"steps {table.steps[0]}-{table.steps[-1]}" if len(table.steps) else ""


def _at(table: StepTable, step: int, between: tuple[int, int]) -> Onset:
    return Onset(step, between, _time_of(table.between(step, None)))


def _time_of(table: StepTable) -> float | None:
    """When its first step was completed, on the clock of its first rank."""
    told = table.t[0][np.isfinite(table.t[0])] if len(table.t) else np.zeros(0)
    return float(told[0]) if len(told) else None
