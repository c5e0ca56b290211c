"""How is a run followed through Prometheus, look by look?"""

from __future__ import annotations

from dataclasses import replace

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ledger import RunState
from train_ledger.ops.diagnose import examine
from train_ledger.ops.prometheus.cause import diagnose_state
from train_ledger.ops.prometheus.state import state_of
from train_ledger.run_dir import RunDir
from train_ledger.sources.prometheus import (
    Prometheus,
    PrometheusError,
    RunSeries,
    known_runs,
    read_run_series,
)

__all__ = ["FollowedRun", "diagnose_by_prometheus"]

_HUNG = ("stalled", "escalated", "stopped")


class FollowedRun:
    """One run of a Prometheus; each look folds what it holds then.

    `name` is what the run is called there; None takes the one run that Prometheus knows. Raises
    PrometheusError where the address is none, Prometheus does not answer, or does not know one such run.
    """

    def __init__(self, url: str, config: Config, name: str | None = None, at: float | None = None) -> None:
        self._config = config
        self.prometheus = Prometheus(url)
        self.name = name or _the_run(self.prometheus, at)

    def series(self, at: float | None = None) -> RunSeries:
        """What Prometheus holds at `at` (unix s; None: now). Raises PrometheusError."""
        return read_run_series(self.prometheus, self.name, self._config.alerts, at)

    def state(self, at: float | None = None) -> RunState:
        """The run as known then. Raises PrometheusError."""
        return state_of(self.series(at), self._config)


def diagnose_by_prometheus(
    url: str,
    config: Config,
    *,
    name: str | None = None,
    at: float | None = None,
    run_dir: RunDir | None = None,
) -> Diagnosis:
    """The one cause by a Prometheus' series as known at `at` (unix seconds; None: now).

    Where there is a `run_dir` beside it, its dumps, stacks and logs are read for a hang that Prometheus
    tells of. Raises PrometheusError as `FollowedRun` does, and RunDirError where run.json cannot be used.
    """
    if run_dir is not None and name is None:
        name = run_dir.name_in(run_dir.read_run())
    run = FollowedRun(url, config, name, at)
    series = run.series(at)
    state = state_of(series, config)
    found = diagnose_state(series, state, config, run.prometheus.address.shown, run_dir)
    if run_dir is None or found.state not in _HUNG:
        return found  # stacks and dumps say who hangs; of the rest the series tell as much
    beside = examine(run_dir, config, at=at, state=state).diagnosis
    if beside.cause in ("none", "unknown") and found.cause not in ("none", "unknown"):
        return found
    return replace(
        beside,
        not_observed=tuple(dict.fromkeys((*beside.not_observed, *found.not_observed))),
        next=tuple(dict.fromkeys((*beside.next, *found.next))),
    )


def _the_run(prometheus: Prometheus, at: float | None) -> str:
    runs = known_runs(prometheus, at)
    if len(runs) == 1:
        return runs[0]
    where = prometheus.address.shown
    if not runs:
        raise PrometheusError(f"{where}: holds nothing of any run: does it scrape train-ledger export?")
    more = f" and {len(runs) - 20} more" if len(runs) > 20 else ""
    raise PrometheusError(f"{where}: knows several runs; name one by --run: {', '.join(runs[:20])}{more}")
