"""Which incidents are planted in a day, and how is such a day made?

Every rule that pages has its own. The job is healthy until the fault strikes, at a random time; it is told
for some time after the earliest moment at which the alert can come.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from train_ledger.chaos.days import faults_hardware, faults_run, faults_stall
from train_ledger.chaos.days.day import Day
from train_ledger.chaos.days.fault import Fault
from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.days.life import start, steps, train
from train_ledger.chaos.days.plan import START_T, JobPlan, Routine
from train_ledger.chaos.days.telling import told_day

__all__ = ["FAULTS", "faulty_day"]

FAULTS: Mapping[str, Fault] = {
    fault.kind: fault for fault in (*faults_stall.FAULTS, *faults_run.FAULTS, *faults_hardware.FAULTS)
}

_HOUR_S = 3600.0
_AFTER_S = 1200.0
_STEP_TIMES_S = (5.0, 10.0, 12.0, 20.0)


def faulty_day(
    kind: str, seed: int, hours: tuple[float, float] = (3.0, 12.0), *, start_t: float = START_T
) -> Day:
    """A day with one of `FAULTS`, which strikes within these hours; raises KeyError for another kind.

    It begins at `start_t` (unix seconds), and is the same day whenever it begins.
    """
    fault = FAULTS[kind]
    rng = random.Random(f"{kind} {seed}")  # noqa: S311  (no secret)
    strikes_s = rng.uniform(*hours) * _HOUR_S
    step_time_s = fault.step_time_s or rng.choice(_STEP_TIMES_S)
    plan = JobPlan(
        hosts=tuple(f"node{place:03d}" for place in range(4 if seed % 2 else 2)),
        step_time_s=step_time_s,
        routine=Routine(
            save_every=round(1800 / step_time_s), save_s=fault.save_s, blocking_s=fault.blocking_s
        ),
        look_every_s=10.0 if fault.of_hardware else 30.0,
        start_t=start_t,
    )
    return told_day(kind, seed, plan, lambda job: _day(job, fault, plan.start_t + strikes_s))


def _day(job: Job, fault: Fault, strikes_t: float) -> Tells:
    truth = job.truth
    truth.kind, truth.alerts, truth.allowed = fault.kind, fault.alerts, fault.allowed
    if not fault.before_first_step:
        yield from start(job)
        yield from train(job, strikes_t)
        while job.last_step_t != job.t or job.step % job.routine.save_every < 10:
            yield from steps(job, 1)
    truth.t = job.t
    yield from fault.script(job)
    until_t = max(job.t, truth.earliest_t + _AFTER_S)
    yield from job.wait_until(until_t) if job.load == "waits" else train(job, until_t)
