"""What of one rank's lines is kept to judge its speed?

Of each rank, since any one of them can hold up all others: so it is little, and many steps are folded at once
without a look at each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from train_ledger.config import Alerts
from train_ledger.facts import PlainStep
from train_ledger.ledger.trends.fragmentation import Fragmentation
from train_ledger.ledger.trends.own_work import OwnWork
from train_ledger.ledger.trends.waits import DataWaits

__all__ = ["RankTrends"]


class RankTrends:
    """`mfu_baseline` is what the rank told last of it in any attempt; all else is of the current one."""

    __slots__ = ("fragmentation", "mfu_baseline", "waits", "work")

    def __init__(self, alerts: Alerts) -> None:
        self.waits = DataWaits(alerts)
        self.fragmentation = Fragmentation(alerts)
        self.work = OwnWork(alerts)
        self.mfu_baseline: float | None = None

    def begin_attempt(self) -> None:
        """Begin anew, as after a restart that nobody counted, too."""
        self.waits.begin_attempt()
        self.fragmentation.begin_attempt()
        self.work.begin_attempt()

    def add(self, step: int, t: float, values: Mapping[str, float], *, steady: bool) -> None:
        """A step was completed; `steady`: it neither warmed up nor followed a pause."""
        if steady and "data_wait_s" in values:
            self.waits.add((t,), (values["data_wait_s"],), (values.get("step_time_s"),))
        self.fragmentation.add(t, values)
        self.work.add(step, values)
        self._hear_baseline(values.get("mfu_baseline"))

    def add_all(self, times: Sequence[float], steps: Sequence[PlainStep]) -> None:
        """Steady steps in a row were completed, all values of which are finite."""
        waits_s = [step.data_wait_s for step in steps]
        if waits_s.count(None) < len(waits_s):
            self.waits.add(times, waits_s, [step.step_time_s for step in steps])
        self.fragmentation.add_all(times, steps)
        self.work.add_all(steps)
        for told in [step for step in steps if step.mfu_baseline is not None]:
            self._hear_baseline(told.mfu_baseline)

    def _hear_baseline(self, percent: float | None) -> None:
        if percent is not None and 0 < percent < math.inf:
            self.mfu_baseline = percent
