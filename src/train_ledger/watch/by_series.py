"""How is a run kept of which a Prometheus alone tells?

Where no file system is shared the keeper's folder holds its journal alone, and the run is folded from the
series. A Prometheus that does not answer is no run that stands: what is known stays as it was, and that the
run cannot be read is said and, in time, paged.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from train_ledger.config import Config
from train_ledger.ledger import RunState
from train_ledger.ops.prometheus import FollowedRun, diagnose_state, state_of
from train_ledger.run_dir import RunDir
from train_ledger.sources.prometheus import PrometheusError, RunSeries
from train_ledger.watch.clock import RunClock
from train_ledger.watch.console import Console
from train_ledger.watch.keeper import Keeper
from train_ledger.watch.respond import Collected, FirstAnswers

__all__ = ["SeriesKeeper"]


class SeriesKeeper(Keeper):
    """The keeper of one run of a Prometheus, which is asked once an evaluation interval.

    Dumps and stacks are not taken: nobody here reaches the ranks. Raises RunDirError and JournalError as a
    keeper does.
    """

    def __init__(
        self,
        run_dir: RunDir,
        config: Config,
        console: Console,
        followed: FollowedRun,
        clock: RunClock | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._followed, self._settings, self._ticks = followed, config, ticks
        self._series: RunSeries | None = None
        self._asked_s = self._series_s = -math.inf
        self._trouble: str | None = None
        self._trouble_t = 0.0
        super().__init__(run_dir, config, console, clock, self._answer)
        self.run_name = self._desk.run_name = followed.name
        self._is_named = True

    def _read(self) -> None:
        """Ask, where that was long enough ago; the first answer is what there is to judge by."""
        if self._ticks() - self._asked_s < self._settings.alerts.evaluation_interval_s:
            return
        self._asked_s = self._ticks()
        try:
            self._series = self._followed.series()
        except PrometheusError as error:
            self._note_trouble(str(error))
        else:
            self._trouble, self._series_s = None, self._ticks()
        self._caught_up = self._series is not None

    def _note_trouble(self, why: str) -> None:
        if self._trouble is None:
            self._trouble_t = self._now()
            self._book.console.remark(why)
        self._trouble = why

    def _look(self) -> RunState:
        """Of a Prometheus that does not answer the run as it was, so that nothing seems to stand."""
        if self._series is None:
            return super()._look()
        state, now = state_of(self._series, self._settings), self._now()
        if self._trouble is None:
            return state
        return replace(
            state,
            t=now,
            stall_threshold_s=state.stall_threshold_s + now - state.t,
            unreadable=self._trouble,
            unreadable_since_t=self._trouble_t,
        )

    def _now(self) -> float:
        """On Prometheus' clock, carried on from its last answer."""
        if self._series is None:
            return super()._now()
        return self._series.t + self._ticks() - self._series_s

    @property
    def not_read(self) -> tuple[str, ...]:
        return (*super().not_read, *([self._trouble] if self._trouble else []))

    def close(self) -> None:
        """Let go; there are no files of which another keeper would have to know where to go on."""
        self._caught_up = False
        super().close()

    def _answer(
        self, run_dir: RunDir, config: Config, state: RunState, _: str, __: threading.Event | None
    ) -> FirstAnswers:
        series = self._series or RunSeries(state.run, state.t, {})
        shown = self._followed.prometheus.address.shown
        return FirstAnswers(Collected((), (), {}, 0.0), diagnose_state(series, state, config, shown))
