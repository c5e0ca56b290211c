"""What is a simulated job like, and what is wrong with it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from train_ledger.slow.table import StepTable

__all__ = ["CAUSES", "SlowJob", "SlowPlan", "SlowTruth", "random_plan"]

CAUSES = (
    "slow.straggler.clock", "slow.straggler.link", "slow.straggler.software", "slow.stage_imbalance",
    "slow.sequence_imbalance", "slow.data", "slow.fragmentation", "slow.logging", "slow.checkpoint",
    "slow.gc", "slow.host_memory", "slow.communication",
)  # fmt: skip
"""The faults by their cause codes."""

_LAYOUTS = (
    (4, 1, 1), (8, 1, 1), (16, 1, 1), (32, 1, 1), (64, 1, 1), (4, 8, 1), (8, 2, 4), (4, 4, 4), (16, 2, 2),
)  # fmt: skip
"""(dp, tp, pp)"""


@dataclass(frozen=True, slots=True)
class SlowPlan:
    """What a job is like. `noise` is the spread of a rank's own work, with the tails of a t of 3 degrees.

    `stride`: every so manieth step is told. `effect` says by how much the fault stretches what it hits.
    """

    seed: int
    dp: int = 8
    tp: int = 1
    pp: int = 1
    ranks_per_host: int = 8
    steps: int = 400
    step_s: float = 1.0
    noise: float = 0.01
    uneven: float = 0.005
    checkpoint_every: int = 100
    evaluate_every: int = 0
    gc_every: int = 0
    tokens_vary: float = 0.0
    bursts: int = 0
    hiccups: float = 0.0
    stride: int = 1
    tells_waits: bool = True
    cause: str | None = None
    onset: int = 200
    effect: float = 0.2
    whole_host: bool = False

    @property
    def ranks(self) -> int:
        return self.dp * self.tp * self.pp


@dataclass(frozen=True, slots=True)
class SlowTruth:
    """What is wrong from step `onset` on: `kind` as of `Who`, the culprits, the part that grew."""

    cause: str | None = None
    kind: str = "nobody"
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    onset: int | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True)
class SlowJob:
    """A job as its ranks told it."""

    plan: SlowPlan
    table: StepTable
    truth: SlowTruth
    run: Mapping[str, Any]


def random_plan(seed: int, cause: str | None = None, steps: int = 400) -> SlowPlan:
    """A job of any kind; with this fault, or healthy."""
    rng = np.random.default_rng([seed, 6])
    dp, tp, pp = _LAYOUTS[int(rng.integers(0, len(_LAYOUTS)))]
    plan = SlowPlan(
        seed,
        dp,
        tp,
        pp,
        steps=steps,
        step_s=float(rng.choice([0.05, 0.8, 4.0, 12.0])),
        noise=float(rng.uniform(0.005, 0.03)),
        uneven=float(rng.uniform(0.002, 0.012)),
        checkpoint_every=int(rng.choice([0, 60, 150])),
        evaluate_every=int(rng.choice([0, 0, 170])),
        gc_every=int(rng.choice([0, 40])),
        tokens_vary=float(rng.choice([0.0, 0.0, 0.01, 0.02])),
        bursts=int(rng.integers(0, 4)),
        stride=1 if cause else int(rng.choice([1, 1, 1, 10])),
        hiccups=float(rng.choice([0.0, 0.0005])),
        tells_waits=bool(rng.random() < 0.8),
        cause=cause,
        onset=int(rng.integers(120, 320)) if cause else steps,
        effect=float(rng.uniform(0.12, 0.8)),
    )
    if cause == "slow.stage_imbalance":
        plan = replace(plan, dp=8, tp=2, pp=4, onset=0)
    if cause in ("slow.straggler.clock", "slow.straggler.software"):
        plan = replace(plan, whole_host=bool(rng.random() < 0.3) and plan.ranks >= 24)
    if cause in ("slow.communication", "slow.straggler.link"):
        plan = replace(plan, tells_waits=True)
    return plan
