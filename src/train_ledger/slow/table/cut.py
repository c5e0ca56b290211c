"""Which lines of a rank lie behind the end that is wanted?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from train_ledger.slow.table.files import Key
from train_ledger.slow.table.rows import RankRows

__all__ = ["AfterStep", "AfterTime"]


@dataclass(frozen=True, slots=True)
class AfterTime:
    """What was written after `t`, unix seconds by the rank's own host."""

    t: float

    def is_beyond(self, line: Key) -> bool | None:
        """Whether this line is; None where it does not say."""
        return None if line.t is None else line.t > self.t

    def kept(self, rows: RankRows) -> RankRows:
        """The rows before it."""
        return rows.of(rows.t <= self.t)


@dataclass(frozen=True, slots=True)
class AfterStep:
    """What comes after a step of an attempt."""

    attempt: int
    step: int

    def is_beyond(self, line: Key) -> bool | None:
        """Whether this line is; None where it does not say."""
        if line.event or line.step is None:
            return None
        return (line.attempt, line.step) > (self.attempt, self.step)

    def kept(self, rows: RankRows) -> RankRows:
        """The rows before it."""
        same = rows.attempt == self.attempt
        return rows.of(np.where(same, rows.step <= self.step, rows.attempt < self.attempt))
