"""What does a job do in its life: start, train, save, evaluate, restart, end?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.story import identity_at

__all__ = [
    "announce",
    "crash_and_restart",
    "end",
    "evaluate",
    "phase",
    "planned_stop",
    "restart",
    "save",
    "start",
    "steps",
    "train",
]


def start(job: Job) -> Tells:
    """A launcher starts the job: every rank says who it is, sets up, compiles."""
    yield from announce(job)
    yield from phase(job, "start_up", job.plan.start_up_s)
    yield from phase(job, "compile", job.plan.compile_s)


def announce(job: Job) -> Tells:
    for rank in job.ranks:
        known = identity_at(job.host_of(rank), rank % job.plan.per_host, job.attempt)
        known["pci"] = job.machines.cards(job.host_of(rank))[rank % job.plan.per_host].pci
        yield from job.event("run_start", [rank], world_size=len(job.ranks), **known)


def phase(job: Job, name: str, seconds: float, ranks: Iterable[int] | None = None) -> Tells:
    those = job.ranks if ranks is None else list(ranks)
    yield from job.event("phase_start", those, phase=name)
    yield from job.wait(seconds)
    yield from job.event("phase_end", those, phase=name)


def step_s(job: Job) -> float:
    """How long the next step takes."""
    spread = job.rng.gauss(0.0, 1.0)
    if job.plan.heavy_tailed:
        spread = abs(spread) / math.sqrt(job.rng.gammavariate(1.5, 2.0) / 3.0)
    drag = max(job.drags.values(), default=1.0)
    took_s = job.plan.step_time_s * max(0.5, 1 + job.plan.noise * spread)
    return took_s * job.stretch(job.t) * (1 + 0.8 * (drag - 1))


def steps(job: Job, count: int) -> Tells:
    """So many steps, with what the routine says stands between them."""
    for _ in range(count):
        yield from one_step(job)


def train(job: Job, until_t: float) -> Tells:
    """Steps until a time."""
    while job.t < until_t:
        yield from one_step(job)


def one_step(job: Job) -> Tells:
    job.load = "trains"
    yield from job.complete_step(step_s(job))
    routine = job.routine
    if routine.save_every and job.step % routine.save_every == 0:
        yield from save(job)
    if routine.evaluate_every and job.step % routine.evaluate_every == 0:
        yield from evaluate(job)


def save(job: Job, save_s: float | None = None, error: str | None = None) -> Tells:
    """A checkpoint; what does not block the training ends beside it."""
    routine, step = job.routine, job.step
    whole_s = (routine.save_s if save_s is None else save_s) * (1 + 0.1 * job.rng.random())
    blocking_s = whole_s if routine.blocking_s is None else min(whole_s, routine.blocking_s)
    yield from job.event("ckpt_start", step=step)
    job.load = "idle"
    yield from phase(job, "checkpoint_save", blocking_s)
    job.load = "trains"
    job.paused_s += blocking_s
    details: dict[str, Any] = {"step": step, "duration_s": whole_s, "blocking_s": blocking_s, "durable": True}

    def done() -> Tells:
        if error is None:
            job.saved_t.append(job.t)
            yield from job.event("ckpt_saved", **details)
        else:
            yield from job.event("ckpt_failed", step=step, error=error)

    if blocking_s >= whole_s:
        yield from done()
    else:
        attempt = job.attempt
        job.later(job.t + whole_s - blocking_s, lambda: done() if job.attempt == attempt else None)


def evaluate(job: Job) -> Tells:
    """All ranks evaluate, or some while the others wait for them."""
    routine = job.routine
    ranks = list(job.ranks if routine.evaluate_ranks is None else routine.evaluate_ranks)
    low_s, high_s = routine.evaluate_s
    yield from job.event("eval_start", ranks, step=job.step)
    job.load = "waits" if len(ranks) < len(job.ranks) else "trains"
    yield from job.wait(low_s + (high_s - low_s) * job.rng.random())
    yield from job.event("eval_end", ranks, step=job.step)
    job.load = "trains"


def restart(job: Job, from_step: int, dead_s: float, hosts: Iterable[str] | None = None) -> Tells:
    """Nothing runs for a while; then the next attempt starts, perhaps elsewhere, and loads a checkpoint."""
    job.load = "idle"
    yield from job.wait(dead_s)
    job.attempt += 1
    job.step = from_step
    job.last_step_t = None
    job.paused_s = 0.0
    if hosts is not None:
        job.hosts = list(hosts)
    yield from start(job)
    yield from phase(job, "checkpoint_load", 30.0)


def crash_and_restart(job: Job, dead_s: float = 40.0, hosts: Iterable[str] | None = None) -> Tells:
    """A rank raises, the launcher ends the others and starts again from the last checkpoint."""
    culprit = job.rng.choice(job.ranks)
    kind = {
        "type": "RuntimeError",
        "message": "NCCL error: remote process exited or there was a network error",
    }
    yield from job.event("exception", [culprit], **kind)
    yield from job.event("signal", [rank for rank in job.ranks if rank != culprit], number=15)
    yield from job.wait(5.0)
    yield from job.seen_gone(job.ranks)
    every = job.routine.save_every or 100
    yield from restart(job, job.step // every * every, dead_s - 5.0, hosts)


def planned_stop(job: Job) -> Tells:
    """The job saves and ends in good order."""
    yield from save(job)
    yield from end(job)


def end(job: Job, apart_s: float = 0.0) -> Tells:
    """Every rank says that it came to its end, the last one `apart_s` after the first."""
    ranks = list(job.ranks)
    job.rng.shuffle(ranks)
    for rank in ranks:
        yield from job.event("run_end", [rank])
        yield from job.wait(apart_s / len(ranks))
    job.load = "idle"
