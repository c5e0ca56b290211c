"""What does a healthy job go through in a day?

Each script tells a job until a time; nothing in it is worth waking anybody.
"""

from __future__ import annotations

import math

from train_ledger.chaos.days.happenings import grow_sbe, hot, profiled, xid
from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.days.life import (
    announce,
    crash_and_restart,
    end,
    phase,
    planned_stop,
    restart,
    save,
    start,
    steps,
    train,
)
from train_ledger.chaos.days.plan import DAY_S, START_T

__all__ = [
    "cannot_compile_ahead",
    "drifts",
    "finished_early",
    "longer_sequences",
    "odd_hardware",
    "odd_numerics",
    "one_job_after_another",
    "power_capped",
    "resized",
    "restarts",
    "simply",
    "slow_to_start",
]

_HOUR_S = 3600.0


def simply(job: Job, until_t: float) -> Tells:
    yield from start(job)
    yield from train(job, until_t)


def restarts(job: Job, until_t: float) -> Tells:
    """Two crashes a day, each with rework; the second time on another node."""
    yield from start(job)
    yield from train(job, job.t + (7 + 2 * job.rng.random()) * _HOUR_S)
    yield from crash_and_restart(job)
    yield from train(job, job.t + (7 + 2 * job.rng.random()) * _HOUR_S)
    yield from crash_and_restart(job, hosts=[*job.hosts[:-1], "node900"])
    yield from train(job, until_t)


def resized(job: Job, until_t: float) -> Tells:
    """Stopped in good order, and started on fewer hosts some minutes later; later on all of them again."""
    all_hosts = list(job.hosts)
    yield from start(job)
    yield from train(job, job.t + 9 * _HOUR_S)
    yield from planned_stop(job)
    yield from restart(job, job.step, 300.0, all_hosts[:-1])
    yield from train(job, job.t + 6 * _HOUR_S)
    yield from planned_stop(job)
    yield from restart(job, job.step, 420.0, all_hosts)
    yield from train(job, until_t)


def drifts(job: Job, until_t: float) -> Tells:
    """Some percent slower from morning to evening."""
    job.stretch = lambda t: 1 + 0.04 * (t - START_T) / DAY_S
    yield from simply(job, until_t)


def longer_sequences(job: Job, until_t: float) -> Tells:
    """Every six hours sequences, and so steps, are longer by three tenths for an hour."""
    job.work = job.stretch = lambda t: 1.3 if (t - START_T) % (6 * _HOUR_S) > 5 * _HOUR_S else 1.0
    yield from simply(job, until_t)


def odd_numerics(job: Job, until_t: float) -> Tells:
    """Gradients spike and go back; the scaler finds an overflow now and then and leaves the step out."""
    yield from start(job)
    while job.t < until_t:
        yield from train(job, min(until_t, job.t + 40 * 60.0))
        job.grad_norm = 0.5 * 14
        yield from steps(job, 2)
        job.grad_norm = 0.5
        yield from steps(job, 50)
        job.grad_norm, job.skipped, job.loss_scale = math.inf, job.skipped + 1, job.loss_scale / 2
        yield from steps(job, 1)
        job.grad_norm = 0.5
        yield from steps(job, 200)
        job.loss_scale = 65_536.0


def odd_hardware(job: Job, until_t: float) -> Tells:
    """Users' XIDs, once each; corrected errors; heat for some minutes; a profiler; a kill."""
    host, other = job.hosts[0], job.hosts[-1]
    cards = job.machines.cards(host)
    for place, code in enumerate((13, 31, 43)):
        xid(job, START_T + (2 + 3 * place) * _HOUR_S, host, place, code)
    for place in range(20):
        job.later(START_T + (1 + place) * _HOUR_S, lambda: grow_sbe(cards[1]))
    for hour in (4.0, 15.0):
        hot(job, START_T + hour * _HOUR_S, 230.0, job.machines.cards(other)[int(hour) % 4])
    profiled(job, START_T + 6 * _HOUR_S, 1800.0)
    yield from start(job)
    yield from train(job, START_T + 12 * _HOUR_S)
    yield from crash_and_restart(job, dead_s=60.0)
    for place in range(job.plan.per_host):
        yield from job.kernel_xid(
            host, place, 45, "pid=100000, name=python, Ch 00000008", pid=100_000 + place
        )
    yield from train(job, until_t)


def power_capped(job: Job, until_t: float) -> Tells:
    job.machines.capped = True
    yield from simply(job, until_t)


def finished_early(job: Job, until_t: float) -> Tells:
    """It ends at noon, its ranks minutes apart while the last one saves; the hosts stay as they are."""
    yield from start(job)
    yield from train(job, START_T + 9 * _HOUR_S)
    yield from save(job)
    last = job.rng.choice(job.ranks)
    yield from job.event("phase_start", [last], phase="checkpoint_save")
    for rank in job.ranks:
        if rank != last:
            yield from job.event("run_end", [rank])
            yield from job.wait(20.0)
    yield from job.wait(120.0)
    yield from job.event("phase_end", [last], phase="checkpoint_save")
    yield from job.event("run_end", [last])
    job.load = "idle"
    yield from job.wait_until(until_t)


def one_job_after_another(job: Job, until_t: float) -> Tells:
    """The hosts had another job's faults before this one came, and have another's after it ended."""
    host = job.hosts[0]
    yield from job.wait(1800.0)
    yield from job.kernel_xid(host, 1, 79, "NVRM: Xid (PCI:0000:11:00): 79, GPU has fallen off the bus.")
    job.machines.cards(host)[1].xid = 79
    yield from job.wait(1800.0)
    job.machines.cards(host)[1].xid = 0
    yield from start(job)
    yield from train(job, START_T + 12 * _HOUR_S)
    yield from save(job)
    yield from end(job, apart_s=30.0)
    yield from job.wait(_HOUR_S)
    for hour in (14, 15, 16):
        xid(job, START_T + hour * _HOUR_S, host, 2, 31)
    xid(job, START_T + 17 * _HOUR_S, host, 3, 95)
    job.load = "trains"
    yield from job.wait_until(until_t)


def slow_to_start(job: Job, until_t: float) -> Tells:
    """Twenty minutes until it is set up, and again after a restart."""
    yield from start(job)
    yield from train(job, START_T + 14 * _HOUR_S)
    yield from crash_and_restart(job)
    yield from train(job, until_t)


def cannot_compile_ahead(job: Job, until_t: float) -> Tells:
    """It compiles in its first steps, and once again when the shapes change at noon."""
    yield from announce(job)
    yield from phase(job, "start_up", job.plan.start_up_s)
    yield from job.complete_step(600.0)
    yield from train(job, START_T + 12 * _HOUR_S)
    yield from phase(job, "compile", 480.0)
    yield from train(job, until_t)
