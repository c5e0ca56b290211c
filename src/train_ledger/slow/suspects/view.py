"""What took how long in a step, before and now?

Steps that save, evaluate or warm up are left out, but for what is asked of just these. A single step that
took very long moves nothing; a pause that comes every few steps does.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.peers.work import own_work
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Flags, Floats

__all__ = [
    "OWN",
    "PARTS",
    "Level",
    "Onset",
    "View",
    "over_ranks",
    "seconds_in_words",
    "step_times",
    "typical",
    "values_of",
]

OWN = "own work"
"""What a rank did itself but for data, logging, garbage collection and saving, which are parts, too."""

PARTS = ("data_wait_s", "log_s", "gc_s", "ckpt_s", "comm_wait_s", OWN)

_CLIPPED_AT = 0.98
_SHORTEST_RISE = 0.02
_LEAST_SHARE = 0.3
_FEWEST_WHOLE = 10
_SURE = 3.0


@dataclass(frozen=True, slots=True)
class Onset:
    """Since when steps are slower: the step, the interval it lies in, its time on the first rank's clock."""

    step: int
    between: tuple[int, int]
    t: float | None = None
    shape: Literal["jump", "ramp"] = "jump"


@dataclass(frozen=True, slots=True)
class Level:
    """Seconds of a step: in the median of the ranks, on the rank that took longest, and that took least."""

    median: float
    longest: float
    least: float


def typical(series: Floats) -> float:
    """The mean of what is told, in which the longest fiftieth counts no more than its shortest.

    >>> typical(np.array([1.0] * 99 + [1000.0]))
    1.0
    """
    told = series[np.isfinite(series)]
    return float(np.minimum(told, np.quantile(told, _CLIPPED_AT)).mean()) if len(told) else math.nan


def seconds_in_words(seconds: float | None) -> str:
    """
    >>> seconds_in_words(0.00312), seconds_in_words(0.0998), seconds_in_words(12.04), seconds_in_words(None)
    ('3.1 ms', '0.0998 s', '12 s', 'unknown')
    """
    if seconds is None or not math.isfinite(seconds):
        return "unknown"
    return f"{seconds * 1000:.2g} ms" if abs(seconds) < 0.0995 else f"{seconds:.3g} s"


@dataclass(frozen=True)
class View:
    """The newest steps beside earlier ones; `before` is None where there are none to compare with.

    `compared_with` says in words which those are. `onset` is None where steps did not become slower within
    what was read.
    """

    now: StepTable
    before: StepTable | None
    compared_with: str
    alerts: Alerts
    onset: Onset | None = None
    slower: bool = False
    levels: dict[tuple[str, str], Level | None] = field(default_factory=dict)

    @cached_property
    def now_s(self) -> float:
        return typical(step_times(self.now))

    @cached_property
    def before_s(self) -> float | None:
        if self.before is None:
            return None
        found = typical(step_times(self.before))
        return found if math.isfinite(found) else None

    @property
    def rise_s(self) -> float:
        """By how much a step takes longer than before; 0 where it does not."""
        return max(0.0, self.now_s - self.before_s) if self.slower and self.before_s is not None else 0.0

    def of_now(self, name: str) -> Level | None:
        return self._level("now", self.now, name)

    def of_before(self, name: str) -> Level | None:
        return None if self.before is None else self._level("before", self.before, name)

    def _level(self, which: str, table: StepTable, name: str) -> Level | None:
        if (which, name) not in self.levels:
            self.levels[which, name] = _level(table, name)
        return self.levels[which, name]

    def rise_of(self, name: str, figure: str = "longest") -> float | None:
        """By how much a part takes longer than before; None where that is not known of either."""
        now, before = self.of_now(name), self.of_before(name)
        return None if now is None or before is None else getattr(now, figure) - getattr(before, figure)

    def explains(self, rise_s: float | None) -> bool:
        """Whether a rise is a part of why steps take longer that counts."""
        if rise_s is None or not self.slower or self.before_s is None:
            return False
        return rise_s >= max(_LEAST_SHARE * self.rise_s, _SHORTEST_RISE * self.before_s)

    def is_sure(self, name: str, figure: Callable[..., Any] = np.nanmax) -> bool:
        """Whether a part became longer by more than the mean of so few steps does by chance.

        On the rank that took longest in each step, or by another figure over the ranks.
        """
        tables = [table for table in (self.now, self.before) if table is not None]
        told = [values for table in tables if (values := _told(table, name, figure)) is not None]
        if len(told) < 2:
            return True
        variance = sum(float(values.var()) / len(values) for values in told)
        return bool(told[0].mean() - told[1].mean() >= _SURE * math.sqrt(variance))

    @property
    def parts(self) -> Mapping[str, Mapping[str, Mapping[str, float | None]]]:
        """As `SlowAnswer.parts`."""
        return {
            name: {
                figure: {"before_s": _of(self.of_before(name), figure), "now_s": _of(level, figure)}
                for figure in ("median", "longest", "least")
            }
            for name in PARTS
            if (level := self.of_now(name)) is not None
        }


def step_times(table: StepTable) -> Floats:
    """The duration of each steady step, in the median of the ranks."""
    return over_ranks(np.nanmedian, table.of("step_time_s")[:, table.steady])


def values_of(table: StepTable, name: str) -> Floats | None:
    """A part of all steps, ranks × steps; None where nobody tells it."""
    if name != OWN:
        return table.of(name) if table.tells(name) else None
    own = own_work(table)
    if own is None or own.by == "parts":
        return None
    return own.parts["compute"] + own.parts.get("host", 0.0)


def _level(table: StepTable, name: str) -> Level | None:
    values = values_of(table, name)
    if values is None:
        return None
    chosen = _chosen(table, name, values)
    if not np.isfinite(chosen).any():
        return None
    # A pause that comes now and then is told by the mean alone.
    figure = _mean if name in ("gc_s", "ckpt_s") else typical
    return Level(
        figure(over_ranks(np.nanmedian, chosen)),
        figure(over_ranks(np.nanmax, chosen)),
        figure(over_ranks(np.nanmin, chosen)),
    )


def _chosen(table: StepTable, name: str, values: Floats) -> Floats:
    """The steps that count; of waits, if enough, those that all told: who is not heard may wait least."""
    chosen = values[:, _counted(table, name)]
    if name != "comm_wait_s":
        return chosen
    whole = np.isfinite(chosen[np.isfinite(chosen).any(axis=1)]).all(axis=0)
    return chosen[:, whole] if whole.sum() >= _FEWEST_WHOLE else chosen


def _counted(table: StepTable, name: str) -> Flags:
    if name == "ckpt_s":
        return ~(table.marks.restart | table.marks.warm_up)
    return table.steady


def _told(table: StepTable, name: str, figure: Callable[..., Any]) -> Floats | None:
    """A part's seconds of each step by a figure over the ranks; None where nobody tells it."""
    values = values_of(table, name)
    if values is None:
        return None
    found = over_ranks(figure, _chosen(table, name, values))
    found = found[np.isfinite(found)]
    return found if len(found) > 1 else None


def _mean(series: Floats) -> float:
    return float(np.nanmean(series)) if np.isfinite(series).any() else math.nan


def over_ranks(figure: Callable[..., Any], values: Floats) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a step that nobody told
        return np.asarray(figure(values, axis=0), dtype=np.float64)


def _of(level: Level | None, figure: str) -> float | None:
    found = None if level is None else float(getattr(level, figure))
    return found if found is not None and math.isfinite(found) else None
