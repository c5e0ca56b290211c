"""What do the parts of a monitor need of it?"""

from __future__ import annotations

from typing import Any, Protocol

from train_ledger.run_dir import RunDir
from train_ledger.signals.timing.phases import OpenPhase
from train_ledger.signals.writing.logger import SignalLogger

__all__ = ["Voice"]


class Voice(Protocol):
    """One rank's voice; `monitor.Monitor` is it."""

    run_dir: RunDir
    rank: int
    attempt: int
    logger: SignalLogger
    last_step: int | None

    def event(self, name: str, /, *, t: float | None = None, step: int | None = None, **details: Any) -> None:
        """Write an event line."""

    def phase(self, name: str) -> OpenPhase:
        """A part of the step or of the run."""

    def close(self) -> None:
        """The run ended as it should."""
