"""How long does each rank of a healthy job work in each step, and on what?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from train_ledger.chaos.slow_fleet.plan import SlowPlan, SlowTruth
from train_ledger.slow.table.step_table import Flags, Floats, Ints

__all__ = ["GIB", "Work", "healthy"]

GIB = float(1 << 30)


@dataclass(slots=True)
class Work:
    """Seconds of each rank in each step, and what stood in the steps; the fault changes them."""

    plan: SlowPlan
    rng: np.random.Generator
    parts: dict[str, Floats]
    others: dict[str, Floats]
    tokens: Floats
    comm_s: Floats
    hosts: tuple[str, ...]
    stage: Ints
    replica: Ints
    saves: Flags
    truth: SlowTruth = field(default_factory=SlowTruth)

    @property
    def after(self) -> Ints:
        """How far each step lies behind the onset, 0 before it."""
        return np.maximum(0, np.arange(self.plan.steps) - self.plan.onset + 1)


def healthy(plan: SlowPlan) -> Work:
    rng = np.random.default_rng(plan.seed)
    shape = (plan.ranks, plan.steps)
    rank = np.arange(plan.ranks)
    stage, replica = rank // (plan.tp * plan.dp), rank // plan.tp % plan.dp
    tokens = 1.0 + plan.tokens_vary * np.clip(rng.standard_normal((plan.dp, plan.steps)), -2.5, 2.5)
    tokens = np.maximum(tokens, 0.2)[replica]
    work_s = 0.7 * plan.step_s
    uneven = 1 + plan.uneven * rng.standard_normal(plan.ranks)
    tails = np.clip(1 + plan.noise / np.sqrt(3) * rng.standard_t(3, shape), 0.7, 4.0)
    compute_s = work_s * (0.6 * tokens + 0.4 * tokens**2) * uneven[:, None] * tails
    parts = {
        "compute_s": compute_s,
        "data_wait_s": plan.step_s * 0.002 * rng.exponential(1.0, shape),
        "gc_s": np.zeros(shape),
        "log_s": np.full(shape, 1e-4 * plan.step_s) + 0.003 * plan.step_s * (rank == 0)[:, None],
        "ckpt_s": np.zeros(shape),
    }
    saves = np.zeros(plan.steps, dtype=bool)
    if plan.checkpoint_every:
        saves[plan.checkpoint_every :: plan.checkpoint_every] = True
        parts["ckpt_s"][:, saves] = 2 * plan.step_s * rng.uniform(0.9, 1.1, (plan.ranks, int(saves.sum())))
    hit = rng.random(shape) < plan.hiccups
    parts["data_wait_s"][hit] += plan.step_s * rng.exponential(0.3, int(hit.sum()))
    for _ in range(plan.bursts):
        begin, who = rng.integers(0, plan.steps), rng.integers(0, plan.ranks)
        parts["compute_s"][who, begin : begin + rng.integers(1, 13)] *= rng.uniform(1.1, 1.6)
    if plan.gc_every:
        parts["gc_s"][:, :: plan.gc_every] += 0.05 * plan.step_s
    others = {
        "cpu_percent": rng.normal(110.0, 3.0, shape),
        "rss_bytes": 9 * GIB + np.cumsum(rng.normal(0, 1e4, shape), axis=1),
        "stdout_bytes": np.cumsum(rng.integers(80, 120, shape), axis=1).astype(float),
        "mem_inactive_split": np.abs(rng.normal(0.5, 0.01, shape)) * GIB,
        "num_alloc_retries": np.zeros(shape),
        "num_device_alloc": np.full(shape, 800.0),
    }
    comm_s = plan.step_s * 0.1 * rng.lognormal(0.0, 0.08, plan.steps)
    hosts = tuple(f"node{number // plan.ranks_per_host:03d}" for number in range(plan.ranks))
    return Work(plan, rng, parts, others, tokens, comm_s, hosts, stage, replica, saves)
