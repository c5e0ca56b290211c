"""What are the newest steps of a run to be compared with?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from train_ledger import slow
from train_ledger.ops.slow.history import history_at
from train_ledger.run_dir import RunDir
from train_ledger.slow.table import StepTable

__all__ = ["Wanted", "WantedError", "asked_of"]

_FEWEST_STEPS = 10


class WantedError(Exception):
    """What was to be compared with is not there; the text says what and what would do."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """As a person says it: a step or a time (unix s) to cut at, first and last step, or another run."""

    since_step: int | None = None
    since_t: float | None = None
    steps: tuple[int, int] | None = None
    other_run: Path | None = None


def asked_of(history: slow.History, wanted: Wanted) -> slow.Asked:
    """The same in steps and tables. Raises WantedError, and RunDirError where another run is none."""
    if wanted.other_run is not None:
        return slow.Asked(baseline=_of_run(wanted.other_run))
    if wanted.steps is not None:
        return _of_steps(history, *wanted.steps)
    if wanted.since_t is not None:
        last = history.last_step(wanted.since_t)
        if last is None:
            raise WantedError(
                f"--since {wanted.since_t:.0f}: no step was completed before, so that nothing can be compared"
            )
        return _since(history, last + 1, f"{wanted.since_t:.0f} (step {last + 1})")
    if wanted.since_step is not None:
        return _since(history, wanted.since_step, str(wanted.since_step))
    return slow.Asked()


def _since(history: slow.History, step: int, told: str) -> slow.Asked:
    newest = history.newest(slow.NEWEST)
    if not len(newest.steps):
        return slow.Asked(since_step=step)
    _check(newest.between(step, None), f"--since {told}: from there on", newest)
    _check(history.until(newest.attempt, step - 1, slow.NEWEST), f"--since {told}: before it", newest)
    return slow.Asked(since_step=step)


def _of_steps(history: slow.History, first: int, last: int) -> slow.Asked:
    newest = history.newest(slow.NEWEST)
    if not len(newest.steps):
        return slow.Asked(first_step=first, last_step=last)
    told = f"--baseline {first}-{last}"
    named = history.until(newest.attempt, last, last - first + 1).between(first, last)
    _check(named, f"{told}: among these", newest)
    _check(newest.between(last + 1, None), f"{told}: after these", newest)
    return slow.Asked(first_step=first, last_step=last)


def _check(table: StepTable, where: str, newest: StepTable) -> None:
    """Raises WantedError where that is too little to compare with."""
    count = len(table.steps)
    if count >= _FEWEST_STEPS:
        return
    steps = "is 1 step" if count == 1 else f"are {count or 'no'} steps"
    raise WantedError(
        f"{where} {steps}, and it takes {_FEWEST_STEPS} to compare; the newest step is {newest.steps[-1]}"
    )


def _of_run(path: Path) -> slow.Baseline:
    table = history_at(RunDir.existing(path)).newest(slow.NEWEST)
    if len(table.steps) < _FEWEST_STEPS:
        raise WantedError(
            f"--baseline {path}: {len(table.steps) or 'no'} steps stand there in signals/ or logs, "
            f"and it takes {_FEWEST_STEPS} to compare"
        )
    return slow.Baseline(table, f"steps {table.steps[0]}-{table.steps[-1]} of {path.name}")
