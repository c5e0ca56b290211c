"""What are the newest steps of a run to be compared with?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from train_ledger import slow
from train_ledger.run_dir import RunDir
from train_ledger.slow.table import read_table

__all__ = ["Wanted", "WantedError", "asked_of"]


class WantedError(Exception):
    """What was to be compared with is not there; the text says what and what would do."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """As a person says it: a step or a time (unix s) to cut at, first and last step, or another run."""

    since_step: int | None = None
    since_t: float | None = None
    steps: tuple[int, int] | None = None
    other_run: Path | None = None


def asked_of(run_dir: RunDir, wanted: Wanted) -> slow.Asked:
    """The same in steps and tables. Raises WantedError, and RunDirError where another run is none."""
    if wanted.other_run is not None:
        return slow.Asked(baseline=_of_run(wanted.other_run))
    if wanted.since_t is not None:
        return slow.Asked(since_step=_step_at(run_dir, wanted.since_t))
    first, last = wanted.steps or (None, None)
    return slow.Asked(since_step=wanted.since_step, first_step=first, last_step=last)


def _of_run(path: Path) -> slow.Baseline:
    table = read_table(RunDir.existing(path), slow.NEWEST)
    if not len(table.steps):
        raise WantedError(f"{path}: no steps of ranks (signals/), so that nothing can be compared with it")
    return slow.Baseline(table, f"steps {table.steps[0]}-{table.steps[-1]} of {path.name}")


def _step_at(run_dir: RunDir, t: float) -> int:
    """The first step that was completed after `t`."""
    table = read_table(run_dir, 1, at=t)
    if not len(table.steps):
        raise WantedError(f"--since {t:.0f}: no step was completed before, so that nothing can be compared")
    return int(table.steps[-1]) + 1
