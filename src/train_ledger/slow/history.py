"""What stands in an earlier part of the run, however long it is?

Newest steps, and those before any step, of signal files by seeking, of a log's facts in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from train_ledger.run_dir import RunDir
from train_ledger.slow.change import Change, changes_of, since_when
from train_ledger.slow.table import StepTable, Until, read_table

__all__ = ["FileHistory", "History", "TableHistory"]


class History(Protocol):
    """Where tables of any part of a run come from."""

    def newest(self, steps: int) -> StepTable:
        """The newest steps of all ranks."""
        ...

    def until(self, attempt: int, step: int, steps: int) -> StepTable:
        """The `steps` steps of all ranks that end with this one, or with the last before it."""
        ...

    def since_when(self, newest: StepTable) -> Change | None:
        """When the step time changed to what it is at the end of the newest steps."""
        ...

    def last_step(self, t: float) -> int | None:
        """The last step that the first rank completed up to `t`, unix s by its host's clock; None: none."""
        ...


@dataclass(slots=True)
class FileHistory:
    """A run directory's signal files, as known at `at` (unix s); `read_bytes` counts what was read."""

    run_dir: RunDir
    at: float | None = None
    read_bytes: int = 0

    def newest(self, steps: int) -> StepTable:
        return self._counted(read_table(self.run_dir, steps, at=self.at))

    def until(self, attempt: int, step: int, steps: int) -> StepTable:
        return self._counted(read_table(self.run_dir, steps, until=Until(attempt, step)))

    def since_when(self, newest: StepTable) -> Change | None:
        return since_when(self.run_dir, newest)

    def last_step(self, t: float) -> int | None:
        table = self._counted(read_table(self.run_dir, 1, at=t))
        return int(table.steps[-1]) if len(table.steps) else None

    def _counted(self, table: StepTable) -> StepTable:
        self.read_bytes += table.read_bytes
        return table


@dataclass(frozen=True, slots=True)
class TableHistory:
    """All steps of a run that are in memory."""

    table: StepTable

    def newest(self, steps: int) -> StepTable:
        return self.table.newest(steps)

    def until(self, attempt: int, step: int, steps: int) -> StepTable:
        if attempt < self.table.attempt and self.table.earlier is not None:
            return self.table.earlier.between(None, step).newest(steps)
        return self.table.between(None, step).newest(steps)

    def since_when(self, newest: StepTable) -> Change | None:
        return changes_of(self.table).get("step_time_s")

    def last_step(self, t: float) -> int | None:
        done = self.table.steps[np.nan_to_num(self.table.t[0], nan=np.inf) <= t] if len(self.table.t) else []
        return int(done[-1]) if len(done) else None
