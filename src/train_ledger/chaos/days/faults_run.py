"""What goes wrong in a job that goes on, or that begins again and again?"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from statistics import median

from train_ledger.chaos.days.fault import Fault, blame
from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.days.life import announce, crash_and_restart, phase, save, start, steps, train

__all__ = ["FAULTS"]

_HOUR_S = 3600.0


def _slow_on_all(job: Job) -> Tells:
    """From 12 s a step to 40 s, on all ranks at once."""
    job.stretch = lambda _: 40 / 12
    fault_t = job.t
    yield from train(job, job.t + 1500.0)
    job.truth.earliest_t = next(
        (t for t in _seconds(fault_t, job.t) if _recent_s(job, t) >= 1.5 * _usual_s(job, t)), math.inf
    )


def _seconds(since_t: float, until_t: float) -> list[float]:
    return [since_t + second for second in range(int(until_t - since_t))]


def _recent_s(job: Job, t: float) -> float:
    return median(took_s for at, took_s in job.step_times if t - 600 < at <= t)


def _usual_s(job: Job, t: float) -> float:
    return median(took_s for at, took_s in job.step_times if t - 4800 < at <= t - 1200)


def _nan_once(job: Job) -> Tells:
    job.loss = math.nan
    yield from steps(job, 1)
    job.truth.earliest_t = job.t
    yield from train(job, job.t + 900.0)


def _nan_for_good(job: Job) -> Tells:
    job.grad_norm = math.nan
    for number in range(100):
        job.loss = math.nan
        yield from steps(job, 1)
        if number == 0:
            job.truth.earliest_t = job.t


def _loop(job: Job) -> Tells:
    """It dies soon after each start, from the same checkpoint."""
    for number in range(5):
        yield from crash_and_restart(job)
        if number == 2:
            job.truth.earliest_t = job.t - job.plan.start_up_s - job.plan.compile_s - 30.0
        yield from steps(job, 5)


def _loop_before_first_step(job: Job) -> Tells:
    """It dies while it is set up, again and again."""
    for number in range(6):
        if number == 3:
            job.truth.earliest_t = job.t
        yield from announce(job)
        yield from phase(job, "start_up", 40.0)
        yield from job.event("exception", type="RuntimeError", message="CUDA out of memory")
        yield from job.wait(20.0)
        job.attempt += 1
    job.load = "waits"


def _save_failed(job: Job) -> Tells:
    yield from save(job, error="OSError: [Errno 28] No space left on device")
    job.truth.earliest_t = job.t
    yield from train(job, job.t + 900.0)


def _saved_often(job: Job) -> Tells:
    """Trains until there is something usual about its saves."""
    while len(job.saved_t) < 5:
        yield from steps(job, 1)
    job.truth.t = job.t


def _saves_slow(job: Job) -> Tells:
    """Two saves, beside the training, take five times as long as they did."""
    yield from _saved_often(job)
    for _ in range(2):
        while job.step % job.routine.save_every:
            job.routine, routine = replace(job.routine, save_every=0), job.routine
            yield from steps(job, 1)
            job.routine = routine
        saved = len(job.saved_t)
        yield from save(job, save_s=300.0)
        while len(job.saved_t) == saved:
            yield from steps(job, 1)
    job.truth.earliest_t = job.saved_t[-1]


def _saves_stop(job: Job) -> Tells:
    """Nobody saves any more."""
    yield from _saved_often(job)
    usual_s = median(later - earlier for earlier, later in pairwise(job.saved_t[-20:]))
    job.truth.earliest_t = job.saved_t[-1] + max(60.0, 2 * usual_s)
    job.routine = replace(job.routine, save_every=0)
    yield from train(job, job.truth.earliest_t + 900.0)


def _mfu_low(job: Job) -> Tells:
    """A quarter slower, on all ranks."""
    job.stretch = lambda _: 1.25
    job.truth.earliest_t = job.t + 1800.0
    yield from train(job, job.truth.earliest_t + 900.0)


def _process_gone(job: Job) -> Tells:
    """A process is killed and cannot say so; it is found gone, the others wait for it."""
    culprit = job.rng.choice(job.ranks)
    blame(job, culprit)
    job.mute.add(culprit)
    yield from job.event("phase_start", phase="backward")
    yield from job.wait(5.0)
    job.truth.earliest_t = job.t + 120.0
    yield from job.seen_gone([culprit])
    job.load = "waits"


def _data_regressed(job: Job) -> Tells:
    """After a restart the loader begins elsewhere than it stood at that step."""
    job.samples_shift = -37 * 1024
    yield from crash_and_restart(job)
    yield from steps(job, 1)
    job.truth.earliest_t = job.t
    yield from train(job, job.t + 900.0)


def _host_silent(job: Job) -> Tells:
    """Nothing comes from a host any more, while the training goes on."""
    host = job.rng.choice(job.hosts[1:])
    job.truth.hosts |= {host}
    heard_t = max(job.t, job.looked_t)
    job.machines.silent_hosts.add(host)
    job.truth.earliest_t = heard_t + 300.0
    yield from train(job, job.truth.earliest_t + 900.0)


def _much_time_lost(job: Job) -> Tells:
    """Every half hour it dies, and needs twenty minutes until it goes on: the day is over half lost."""
    began_t = job.t
    job.truth.earliest_t = began_t + 6 * _HOUR_S
    yield from start(job)
    while job.t < job.truth.earliest_t + 1800.0:
        yield from train(job, job.t + 1800.0)
        yield from crash_and_restart(job)
        yield from phase(job, "compile", 900.0)


_STALLED = frozenset({"TrainingStepStalled"})

FAULTS = (
    Fault(
        "slow_on_all",
        _slow_on_all,
        frozenset({"TrainingStepTimeRegressed"}),
        frozenset({"TrainingMfuDegraded"}),
        step_time_s=12.0,
    ),
    Fault("nan_once", _nan_once, frozenset({"TrainingLossNotFinite"})),
    Fault("nan_for_good", _nan_for_good, frozenset({"TrainingLossNotFinite"})),
    Fault("loop", _loop, frozenset({"TrainingRestartLoop"}), _STALLED | {"EffectiveTrainingTimeLow"}),
    Fault(
        "loop_before_first_step",
        _loop_before_first_step,
        frozenset({"TrainingRestartLoop"}),
        _STALLED,
        before_first_step=True,
    ),
    Fault("save_failed", _save_failed, frozenset({"CheckpointSaveFailed"})),
    Fault("saves_slow", _saves_slow, frozenset({"CheckpointSaveFailed"}), save_s=60.0, blocking_s=3.0),
    Fault("saves_stop", _saves_stop, frozenset({"CheckpointSaveFailed"})),
    Fault("mfu_low", _mfu_low, frozenset({"TrainingMfuDegraded"})),
    Fault("process_gone", _process_gone, frozenset({"TrainingProcessGone"}), _STALLED),
    Fault("data_regressed", _data_regressed, frozenset({"DataPositionRegressed"})),
    Fault("host_silent", _host_silent, frozenset({"TrainingTelemetryLost"})),
    Fault(
        "much_time_lost",
        _much_time_lost,
        frozenset({"EffectiveTrainingTimeLow"}),
        before_first_step=True,
    ),
)
