"""Histories for the page to draw."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from train_ledger.facts import Event, HardwareReading, Step
from train_ledger.ledger.history import CURVES, History
from train_ledger.ledger.history.bins import Bins

__all__ = ["KEPT", "Kept", "long", "restarted"]


class Kept:
    """A history that nobody adds to any more."""

    def __init__(self, history: History, progress: float | None = None) -> None:
        self._history = history
        self.progress = progress

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[History]:
        yield self._history


def restarted(ranks: int = 8, steps: int = 200, slow: int = 5) -> History:
    """Two attempts, the second of which did steps once more; one rank works longer than its peers."""
    history = History()
    for attempt, first in ((0, 1), (1, steps // 2)):
        for rank in range(ranks):
            history.add(Event(1000.0 + first, "run_start", rank, attempt=attempt, host="n0"))
            for step in range(first, first + steps):
                work = {"compute_s": 2.0 if rank == slow else 1.0, "loss": 1.0 + 3.0 / step}
                history.add(Step(1000.0 + step, step, rank, attempt, "n0", values=work))
    history.add(Event(1100.0, "ckpt_failed", 0, step=steps // 2, details={"error": "full"}))
    for t in range(50):
        history.add_hardware(HardwareReading(1e9 + t, "n0", gpu=0, values={"DCGM_FI_DEV_SM_CLOCK": 1980.0}))
    return history


def long(ranks: int = 8, steps: int = 500_000) -> History:
    """A month of a run in which each step was another one's like."""
    history, bins, told = History(), Bins(len(CURVES)), np.random.default_rng(1)
    all_steps = np.arange(1, steps + 1)
    for rank in range(ranks):
        for part in np.array_split(all_steps, steps // 5000 + 1):
            values = 1.0 + told.random((len(CURVES), len(part)))
            bins.add(rank, part, 1e9 + 5.0 * part, values)
    history.put_curves(0, bins.arrays(), base=bins.base, width=bins.width)
    return history


KEPT = Kept(restarted())
