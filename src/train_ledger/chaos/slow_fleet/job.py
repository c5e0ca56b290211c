"""What do the ranks of a simulated job tell?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from train_ledger.chaos.fleet import START_T
from train_ledger.chaos.slow_fleet.faults import FAULTS
from train_ledger.chaos.slow_fleet.plan import SlowJob, SlowPlan
from train_ledger.chaos.slow_fleet.work import Work, healthy
from train_ledger.slow.table import StepTable, layout_of
from train_ledger.slow.table.step_table import Floats, Marks

__all__ = ["simulate"]


def simulate(plan: SlowPlan) -> SlowJob:
    """The job of this plan; the same for the same plan."""
    work = healthy(plan)
    if plan.cause is not None:
        FAULTS[plan.cause](work)
    run = {
        "run": f"simulated {plan.seed}",
        "world_size": plan.ranks,
        "parallelism": {"dp": plan.dp, "tp": plan.tp, "pp": plan.pp, "cp": 1, "ep": 1},
        "device": "NVIDIA H100 80GB HBM3",
        "gpu_price_per_hour": 2.5,
        "started": START_T,
    }
    return SlowJob(plan, _table(work, run), work.truth, run)


def _table(work: Work, run: Mapping[str, Any]) -> StepTable:
    plan = work.plan
    own_s = np.asarray(sum(work.parts.values()))
    step_s = _ends(work, own_s)
    evaluates = np.zeros(plan.steps, dtype=bool)
    if plan.evaluate_every:
        evaluates[plan.evaluate_every - 1 :: plan.evaluate_every] = True
        step_s[evaluates] += 5 * plan.step_s
    waits_s = step_s[None, :] - own_s
    nothing = np.zeros(plan.steps, dtype=bool)
    restart = nothing.copy()
    restart[0] = True
    warm_up = nothing.copy()
    warm_up[:3] = True
    parts = dict(work.parts)
    parts["compute_s"] = parts["compute_s"] + parts["gc_s"] + parts["log_s"]
    values = {
        "step_time_s": np.broadcast_to(step_s, own_s.shape).copy(),
        **parts,
        **work.others,
        "tokens": 4096.0 * work.tokens,
    }
    if plan.tells_waits:
        values["comm_wait_s"] = waits_s
    identities = {
        rank: {"host": work.hosts[rank], "gpu": rank % plan.ranks_per_host} for rank in range(plan.ranks)
    }
    told = slice(plan.stride - 1, None, plan.stride)
    t = START_T + np.cumsum(step_s)
    table = StepTable(
        layout_of(run, identities).places(range(plan.ranks)),
        0,
        np.arange(plan.steps, dtype=np.int64),
        np.broadcast_to(t, own_s.shape).copy(),
        values,
        Marks(work.saves, evaluates, restart, warm_up, nothing),
        world_size=plan.ranks,
    )
    return table.columns(told)


def _ends(work: Work, own_s: Floats) -> Floats:
    """How long each step takes: a replica as its slowest stage and the bubble, the job as its slowest one."""
    plan = work.plan
    slowest = np.zeros(plan.steps)
    for replica in range(plan.dp):
        slowest = np.maximum(slowest, own_s[work.replica == replica].max(axis=0))
    bubble = 1 + (plan.pp - 1) / 16
    step_s: Floats = slowest * bubble + work.comm_s
    return step_s
