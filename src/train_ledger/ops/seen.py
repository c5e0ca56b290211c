"""What has been looked at by the time a cause is looked for?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train_ledger.config import Config
from train_ledger.dash import RULES, Firing
from train_ledger.ledger import RunState
from train_ledger.ops.evidence.deaths import ranks_here
from train_ledger.ops.folders import as_run
from train_ledger.ops.keeper_word import Stall, open_stall
from train_ledger.ops.observing import is_long, observe
from train_ledger.ops.starts import with_all_starts
from train_ledger.run_dir import RunDir

__all__ = ["Seen", "look_at_run"]

_HUNG = ("stalled", "escalated", "stopped")
_SLACK_S = 90.0
"""Clocks of hosts differ, and the step during which something failed may still have been written down."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as known at `at` (unix seconds; None: now).

    `firing` are the alerts that hold, by name; `looked_at` the ranks whose processes somebody looked at;
    `stall` what the keeper knows of a stall that the files do not show; `not_read` what was not, in words.
    """

    run_dir: RunDir
    run: Mapping[str, Any]
    config: Config
    state: RunState
    at: float | None = None
    not_read: tuple[str, ...] = ()
    looked_at: tuple[int, ...] = ()
    stall: Stall | None = None
    firing: Mapping[str, tuple[Firing, ...]] | None = None

    def fires(self, alert: str) -> tuple[Firing, ...]:
        """What an alert says now; empty where it does not hold."""
        return (self.firing or {}).get(alert, ())

    @property
    def is_hung(self) -> bool:
        return self.state.state in _HUNG or bool(self.fires("TrainingStepStalled"))

    @property
    def has_dumps(self) -> bool:
        """Whether there is a file in the folder of this attempt's Flight Recorder dumps."""
        return _holds_files(self.run_dir.comm_traces(self.state.attempt))

    @property
    def has_stacks(self) -> bool:
        """Whether there is a file in the folder of this attempt's stacks."""
        return _holds_files(self.run_dir.stacks(self.state.attempt))

    @property
    def world(self) -> frozenset[int]:
        """All ranks that are known to be of the run."""
        named = (rank for rank, it in self.state.ranks.items() if not it.speaks_for_all)
        return frozenset({*range(self.state.world_size or 0), *named})

    @property
    def stands_since_t(self) -> float | None:
        """When it last made a step, else when its attempt began (unix seconds)."""
        if self.state.last_step_t is not None:
            return self.state.last_step_t
        return self.state.attempts[-1].started_t if self.state.attempts else None

    @property
    def since_t(self) -> float | None:
        """What came before this is of an earlier incident."""
        stands = self.stands_since_t
        return None if stands is None else stands - _SLACK_S


def _holds_files(folder: Path) -> bool:
    return folder.is_dir() and any(it.is_file() for it in folder.iterdir())


def look_at_run(run_dir: RunDir, config: Config, at: float | None, state: RunState | None) -> Seen:
    """Fold the run, unless `state` was folded already by who looks at processes, too."""
    run_dir = as_run(run_dir)
    run = run_dir.read_run()
    not_read: tuple[str, ...] = ()
    looked_at = () if state is None else ranks_here(state)
    stall: Stall | None = None
    if state is None:
        state, not_read = observe(run_dir, config, at)
        state = with_all_starts(run_dir, state) if is_long(run_dir) else state
        stall = open_stall(run_dir, state, at) if state.by_logs else None
        if stall is not None and state.state not in _HUNG:
            state = stall.taken_over(state)
    firing = {rule.name: tuple(found) for rule in RULES if (found := rule.check(state, config.alerts))}
    return Seen(run_dir, run, config, state, at, not_read, looked_at, stall, firing)
