"""In which ways does a job stand still?"""

from __future__ import annotations

from train_ledger.chaos.days.fault import Fault
from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.days.life import announce, crash_and_restart, phase, steps

__all__ = ["FAULTS", "stall_limit_s"]

_STALLED = frozenset({"TrainingStepStalled"})
_TIME_LOST = frozenset({"EffectiveTrainingTimeLow"})
"""Half an hour of standing still may be what makes it too much of a young run."""

_FLOOR_S, _FACTOR = 90.0, 3.0
_START_UP_S, _CHECKPOINT_S, _EVALUATION_S = 1800.0, 600.0, 1800.0


def stall_limit_s(job: Job) -> float:
    """For how long no step may be completed outside of the phases that raise the limit."""
    return max(_FLOOR_S, _FACTOR * job.plan.step_time_s)


def _stands(job: Job, limit_s: float) -> None:
    since_t = job.t if job.last_step_t is None else job.last_step_t
    job.truth.earliest_t = since_t + limit_s
    job.load = "waits"


def _in_loader(job: Job) -> Tells:
    """One rank never comes out of its loader; the others wait for it in the backward pass."""
    culprit = job.rng.choice(job.ranks)
    others = [rank for rank in job.ranks if rank != culprit]
    yield from job.event("phase_start", [culprit], phase="data")
    yield from phase(job, "data", 0.01, others)
    yield from job.event("phase_start", others, phase="backward")
    _stands(job, stall_limit_s(job))


def _rank_silent(job: Job) -> Tells:
    """One rank writes nothing any more; the others wait for it."""
    culprit = job.rng.choice(job.ranks)
    job.mute.add(culprit)
    yield from job.event("phase_start", phase="backward")
    _stands(job, stall_limit_s(job))


def _before_first_step(job: Job) -> Tells:
    """Nobody gets through the set-up of communication."""
    _stands(job, _START_UP_S)
    yield from announce(job)
    yield from job.event("phase_start", phase="start_up")


def _in_checkpoint(job: Job) -> Tells:
    """A save that does not end."""
    yield from job.event("ckpt_start", step=job.step)
    yield from job.event("phase_start", phase="checkpoint_save")
    _stands(job, _CHECKPOINT_S)


def _in_evaluation(job: Job) -> Tells:
    yield from job.event("eval_start", step=job.step)
    _stands(job, _EVALUATION_S)


def _after_restart(job: Job) -> Tells:
    """It is restarted, takes some steps, and stands."""
    yield from crash_and_restart(job)
    yield from steps(job, 5)
    yield from job.event("phase_start", phase="forward")
    _stands(job, stall_limit_s(job))


def _in_restart(job: Job) -> Tells:
    """It is restarted and does not come to its first step."""
    yield from crash_and_restart(job)
    yield from job.event("phase_start", phase="compile")
    began_t = job.t - job.plan.start_up_s - job.plan.compile_s - 30.0
    job.truth.earliest_t = began_t + _START_UP_S
    job.load = "waits"


FAULTS = (
    Fault("stall_in_loader", _in_loader, _STALLED, _TIME_LOST),
    Fault("stall_rank_silent", _rank_silent, _STALLED, _TIME_LOST | {"TrainingProcessGone"}),
    Fault("stall_before_first_step", _before_first_step, _STALLED, before_first_step=True),
    Fault("stall_in_checkpoint", _in_checkpoint, _STALLED, _TIME_LOST | {"CheckpointSaveFailed"}),
    Fault("stall_in_evaluation", _in_evaluation, _STALLED, _TIME_LOST),
    Fault("stall_after_restart", _after_restart, _STALLED, _TIME_LOST),
    Fault("stall_in_restart", _in_restart, _STALLED, _TIME_LOST),
)
