"""Which checkpoints does the run have, and how does it save?

A save that several ranks report is one save; one that failed on any rank is none, unless it was done later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from train_ledger.fields import read_number
from train_ledger.ledger.accounts.history import Happened
from train_ledger.ledger.accounts.records import Checkpointing

__all__ = ["Save", "checkpointing", "durable_step", "saves_of"]

_LONGEST_S = 7 * 86_400.0


@dataclass(slots=True)
class Save:
    """One save; times are microseconds on the run's clock. `is_durable`: it lies on its storage."""

    attempt: int
    step: int | None
    started_us: int | None = None
    done_us: int | None = None
    failed_us: int | None = None
    blocking_s: float | None = None
    is_durable: bool = False

    @property
    def succeeded(self) -> bool:
        return self.done_us is not None and (self.failed_us is None or self.done_us > self.failed_us)


def saves_of(told: Iterable[tuple[int, Happened]]) -> list[Save]:
    """The saves of a run in order."""
    saves: dict[tuple[int, int], Save] = {}
    for t_us, it in told:
        if it.name not in ("ckpt_start", "ckpt_saved", "ckpt_failed"):
            continue
        key = (it.attempt, -1 if it.step is None else it.step)
        save = saves.setdefault(key, Save(it.attempt, it.step))
        if it.name == "ckpt_start":
            save.started_us = t_us if save.started_us is None else min(save.started_us, t_us)
        elif it.name == "ckpt_saved":
            _done(save, t_us, it)
        else:
            save.failed_us = t_us if save.failed_us is None else max(save.failed_us, t_us)
    return [saves[key] for key in sorted(saves)]


def _done(save: Save, t_us: int, it: Happened) -> None:
    save.done_us = t_us if save.done_us is None else max(save.done_us, t_us)
    save.is_durable = save.is_durable or it.details.get("durable") is not False
    blocking_s = read_number(it.details.get("blocking_s"))
    if blocking_s is not None and 0 <= blocking_s < _LONGEST_S:
        save.blocking_s = max(blocking_s, save.blocking_s or 0.0)


def durable_step(saves: Iterable[Save], upto: int) -> int | None:
    """The newest step up to `upto` that a durable checkpoint covers."""
    return max(
        (
            it.step
            for it in saves
            if it.succeeded and it.is_durable and it.step is not None and it.step <= upto
        ),
        default=None,
    )


def checkpointing(saves: Iterable[Save], checkpoint_s: float) -> Checkpointing:
    """How the run saves; `checkpoint_s` is the time that its saves cost it in all."""
    done = [it for it in saves if it.succeeded]
    failed = sum(1 for it in saves if it.failed_us is not None)
    pairs = [(a, b) for a, b in pairwise(done) if a.attempt == b.attempt]
    times = [
        (b.done_us - a.done_us) / 1e6 for a, b in pairs if a.done_us is not None and b.done_us is not None
    ]
    steps = [b.step - a.step for a, b in pairs if a.step is not None and b.step is not None]
    blocking = [it.blocking_s for it in done if it.blocking_s is not None]
    if not blocking and done and checkpoint_s > 0:
        blocking = [checkpoint_s / len(done)]
    return Checkpointing(
        saves=len(done),
        failed=failed,
        interval_s=median(times) if times else None,
        interval_steps=float(median(steps)) if steps else None,
        blocking_s=median(blocking) if blocking else None,
    )
