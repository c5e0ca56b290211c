"""How does a script become a day?"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import NamedTuple

from train_ledger.chaos.days.day import Day, Told, Truth
from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.days.plan import JobPlan

__all__ = ["told_day"]


def told_day(
    name: str,
    seed: int,
    plan: JobPlan,
    script: Callable[[Job], Tells],
    *,
    run: Mapping[str, object] | None = None,
    until_t: float = math.inf,
) -> Day:
    """A day of a job that goes through a script, up to `until_t`; `run` is what run.json says besides."""
    truth = Truth()
    job = Job(plan, seed, truth)
    run_json = {
        "run": name,
        "world_size": len(job.ranks),
        "started": plan.start_t,
        "mfu_baseline": 40.0,
        "device": "NVIDIA H100 80GB HBM3",
        **(run or {}),
    }
    return Day(
        name,
        seed,
        plan.start_t,
        run_json,
        _in_order(job, script(job), until_t),
        lambda host: job.clock(host or plan.hosts[0]),
        truth,
    )


class _Waiting(NamedTuple):
    at: float
    number: int
    told: Told


def _in_order(job: Job, script: Tells, until_t: float) -> Tells:
    """What a script tells, in the order in which it can be read; what is read after its end is left out."""
    waiting: list[_Waiting] = []
    for number, told in enumerate(takewhile(lambda _: job.t <= until_t, script)):
        heapq.heappush(waiting, _Waiting(told.at, number, told))
        while waiting and waiting[0].at <= job.t:
            yield heapq.heappop(waiting).told
    while waiting and waiting[0].at <= job.t:
        yield heapq.heappop(waiting).told
