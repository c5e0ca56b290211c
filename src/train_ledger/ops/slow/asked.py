"""Is this run slow, asked for itself?"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ops.observing import observe
from train_ledger.ops.slow.cause import slow_answer, told_of
from train_ledger.ops.slow.history import history_of
from train_ledger.ops.slow.wanted import Wanted, asked_of
from train_ledger.run_dir import RunDir

__all__ = ["look_at"]


def look_at(
    run_dir: RunDir, config: Config, wanted: Wanted | None = None, *, at: float | None = None
) -> Diagnosis:
    """Who drags and what changed, as known at `at` (unix s; None: now); finished runs, too.

    Raises RunDirError where run.json or the signals cannot be used, and WantedError for what is not there.
    """
    run = run_dir.read_run()
    state, not_read = observe(run_dir, config, at)
    history = history_of(run_dir, run, state, at)
    asked = asked_of(history, wanted or Wanted())
    answer = slow_answer(run_dir, run, config, state, at=at, asked=asked, history=history)
    found = told_of(run_dir, run, config, state, answer)
    return replace(found, not_observed=tuple(dict.fromkeys((*found.not_observed, *not_read))))
