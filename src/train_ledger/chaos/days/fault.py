"""What is a planted incident?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from train_ledger.chaos.days.job import Job, Tells

__all__ = ["Fault", "blame"]


@dataclass(frozen=True, slots=True)
class Fault:
    """`script` tells what happens to a job from now on, and writes into `job.truth` when the alert can come.

    `alerts` and `allowed` as in `Truth`. `before_first_step`: it strikes a job that has not begun.
    """

    kind: str
    script: Callable[[Job], Tells]
    alerts: frozenset[str]
    allowed: frozenset[str] = frozenset()
    before_first_step: bool = False
    of_hardware: bool = False
    step_time_s: float | None = None
    save_s: float = 180.0
    blocking_s: float | None = None


def blame(job: Job, rank: int, *, drags: bool = False) -> None:
    """A rank, its host and its GPU may be named."""
    truth = job.truth
    truth.ranks |= {rank}
    truth.hosts |= {job.host_of(rank)}
    truth.gpus |= {rank % job.plan.per_host}
    if drags:
        truth.outliers |= {rank}
