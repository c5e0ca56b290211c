"""How are many runs judged at once, and what becomes of one that cannot be read?

Several processes judge one run after the other. A run that cannot be read, or whose process was killed,
stops none of the others: it is among the answers, with what is wrong with it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from train_ledger.config import ConfigError
from train_ledger.dash.backtest.promtool import PromtoolError
from train_ledger.dash.backtest.trial import Backtest
from train_ledger.run_dir import RunDirError

__all__ = ["Judge", "NotJudged", "backtest_all"]

_MOST = 16
_KILLED = "the process that judged it was killed, as the system does where memory runs out"


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A run that could not be judged, and why, in a line."""

    path: str
    why: str

    @property
    def line(self) -> str:
        """Both in one, the path once."""
        return self.why if self.path in self.why else f"{self.path}: {self.why}"


Judge = Callable[[Path], Backtest]
"""Judges the run in a directory; must be a function that another process can be given."""


def backtest_all(runs: Sequence[Path], judge: Judge) -> Iterator[tuple[int, Backtest | NotJudged]]:
    """(place in `runs`, what came of it) of each run, as soon as it is known.

    Of several runs as many are judged at once as this process may use cores.
    """
    if len(runs) == 1:
        yield 0, _judged(judge, runs[0])
        return
    pool = _pool(min(_MOST, len(runs), len(os.sched_getaffinity(0))))
    places = {pool.submit(_judged, judge, run): place for place, run in enumerate(runs)}
    try:
        for future in as_completed(places):
            place = places[future]
            yield place, _result(future) or _alone(judge, runs[place])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=_end_at_once)


def _end_at_once() -> None:
    """Whoever interrupts the command wants no traceback of each process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _judged(judge: Judge, run: Path) -> Backtest | NotJudged:
    try:
        return judge(run)
    except (RunDirError, ConfigError, PromtoolError) as error:
        return NotJudged(str(run), str(error))
    except OSError as error:
        where = error.filename or run
        return NotJudged(str(run), f"{where}: {error.strerror or error}")


def _result(future: Future[Backtest | NotJudged]) -> Backtest | NotJudged | None:
    """None where a process was killed: which run it was that was too much for it is not said."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None


def _alone(judge: Judge, run: Path) -> Backtest | NotJudged:
    with _pool(1) as pool:
        return _result(pool.submit(_judged, judge, run)) or NotJudged(str(run), _KILLED)
