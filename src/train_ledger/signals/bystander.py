"""What does start() give a process that is no rank of its own?"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from train_ledger.run_dir import RunDir
from train_ledger.signals.identity import Identity
from train_ledger.signals.monitor import Monitor
from train_ledger.signals.timing.phases import Phases
from train_ledger.signals.writing.logger import SignalLogger

__all__ = ["Bystander"]


class Bystander(Monitor):
    """A monitor of which every call works and does nothing: no thread, no hook, no file."""

    def __init__(self, run_dir: RunDir, identity: Identity, attempt: int) -> None:
        self.run_dir = run_dir
        self.rank = identity.rank
        self.world_size = identity.world_size
        self.attempt = attempt
        self.logger = SignalLogger(run_dir.path, identity.rank, attempt=attempt, silent=True)
        self.last_step = None
        self._phases = Phases(self.event)

    def open(self, **run_start: Any) -> None:
        """Nothing begins."""

    def step(self, n: int, /, *, tokens: float | None = None, **fields: float) -> None:
        """The rank's own process counts its steps."""

    def log(self, *, step: int | None = None, **fields: float) -> None:
        """Nothing is logged."""

    def watch(self, model: Any) -> None:
        """Nothing is timed."""

    def close(self) -> None:
        """Nothing ends."""

    def _saw_ready(self, depth: int) -> None:
        """Nothing is told."""

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing ends."""
