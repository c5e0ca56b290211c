"""Is this run slow, who drags, since when and why?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from train_ledger.answer import SlowAnswer
from train_ledger.config import Alerts
from train_ledger.slow.comparing import NEWEST, Baseline, compared, of_baseline, since_step
from train_ledger.slow.history import History
from train_ledger.slow.peers import who
from train_ledger.slow.suspects import Beside, View, suspects
from train_ledger.slow.table import StepTable

__all__ = ["Asked", "look"]

_FEWEST_STEPS = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """What the newest steps are to be compared with: nothing said, the run's own earlier ones.

    `since_step` cuts before that step; `first_step` and `last_step` name steps of this run, `baseline` steps
    of another one.
    """

    since_step: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    baseline: Baseline | None = None


def look(
    history: History, alerts: Alerts, beside: Beside | None = None, asked: Asked | None = None
) -> SlowAnswer:
    """The answer for the newest steps of a run; `beside` is what is known besides the steps."""
    newest = history.newest(NEWEST)
    steady = int(np.isfinite(newest.of("step_time_s")[:, newest.steady]).any(axis=0).sum())
    if steady < _FEWEST_STEPS:
        return _too_few(steady)
    asked = asked or Asked()
    view = _view(history, newest, alerts, asked)
    before = view.before if view.slower and asked.baseline is None else None
    found = who(_judged(newest, view), alerts, before)
    was = who(before, alerts) if before is not None and found.cost else None
    return suspects(view, found, alerts, beside or Beside(), was)


def _view(history: History, newest: StepTable, alerts: Alerts, asked: Asked) -> View:
    if asked.baseline is not None:
        return of_baseline(newest, asked.baseline, alerts)
    if asked.first_step is not None and asked.last_step is not None:
        count = asked.last_step - asked.first_step + 1
        table = history.until(newest.attempt, asked.last_step, count).between(asked.first_step, None)
        words = f"steps {asked.first_step}-{asked.last_step}"
        return of_baseline(newest.between(asked.last_step + 1), Baseline(table, words), alerts)
    if asked.since_step is not None:
        return since_step(history, newest, asked.since_step, alerts)
    return compared(history, newest, alerts)


def _judged(newest: StepTable, view: View) -> StepTable:
    """Who drags is asked of the steps since the change, where they are enough to tell."""
    after = view.now
    return after if view.slower and int(after.steady.sum()) >= 3 * _FEWEST_STEPS else newest


def _too_few(steady: int) -> SlowAnswer:
    why = f"only {steady} steps were completed that are no warm-up; it takes {_FEWEST_STEPS}"
    return SlowAnswer(verdict="cannot_tell", cause="unknown", not_observed=(why,))
