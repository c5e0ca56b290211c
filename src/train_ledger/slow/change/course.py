"""At which step of a long run did its steps become slower?

A few ranks' steps are sampled over the whole attempt, then again where the change lies, until what is left
is read whole: what is read does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from train_ledger.run_dir import RunDir
from train_ledger.slow.change.parts import changes_of
from train_ledger.slow.change.point import Change
from train_ledger.slow.table import StepTable, Until, read_table
from train_ledger.slow.table.joining import side_by_side

__all__ = ["sampled", "since_when"]

_WINDOWS = 24
_WINDOW_STEPS = 24
_RANKS = 3
_WHOLE_STEPS = 600
_MOST_ROUNDS = 6


def since_when(run_dir: RunDir, table: StepTable) -> Change | None:
    """When the step time of the table's attempt changed to what it is at the table's end; None: it did not.

    Raises RunDirError where run.json cannot be used.
    """
    if not len(table.steps) or not table.places:
        return None
    first = 0
    low, high = first, int(table.steps[0])
    found: Change | None = None
    newest = table.rows(range(min(_RANKS, len(table.places))))
    for _ in range(_MOST_ROUNDS):
        whole = high - low <= _WHOLE_STEPS
        earlier = sampled(run_dir, newest, low, high, whole=whole)
        seen = changes_of(side_by_side([*earlier, newest]) if earlier else newest).get("step_time_s")
        if seen is None:
            return found
        found = seen
        if whole or seen.between[0] >= table.steps[0]:
            return found
        reach = 2 * max(1, (high - low) // _WINDOWS)
        low, high = max(first, seen.between[0] - reach), min(int(table.steps[0]), seen.between[1] + reach)
    return found


def sampled(
    run_dir: RunDir, newest: StepTable, low: int, high: int, *, whole: bool = False
) -> Sequence[StepTable]:
    """Tables of a few steps each, spread evenly from step `low` up to before `high`, or all these steps."""
    spread = np.unique(np.linspace(low + _WINDOW_STEPS, high - 1, _WINDOWS).astype(int))
    ends = [high - 1] if whole else spread.tolist()
    tables: list[StepTable] = []
    reached = low - 1
    for end in ends:
        count = _WHOLE_STEPS if whole else _WINDOW_STEPS
        seen = read_table(run_dir, count, until=Until(newest.attempt, end), ranks=newest.ranks)
        if seen.attempt == newest.attempt and len(seen.steps):
            seen = seen.between(reached + 1, end)
        if seen.attempt == newest.attempt and len(seen.steps):
            tables.append(seen)
            reached = int(seen.steps[-1])
    return tables
