"""In which shapes does a healthy day come?

All of it is what jobs do when nothing is wrong, or what heals by itself: nobody is to be woken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from train_ledger.chaos.days import healthy_scripts as scripts
from train_ledger.chaos.days.clock import HostClock
from train_ledger.chaos.days.day import Day
from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.days.plan import START_T, JobPlan, Routine
from train_ledger.chaos.days.telling import told_day

__all__ = ["SHAPES", "Shape", "healthy_day"]

Script = Callable[[Job, float], Tells]
"""Tells a job until a time."""

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Shape:
    """What a job is like, what it goes through, and what run.json says besides."""

    what: str
    plan: JobPlan
    script: Script
    run: Mapping[str, object] | None = None


def _clocks(*clocks: HostClock) -> dict[str, HostClock]:
    return {f"node{number:03d}": clock for number, clock in enumerate(clocks)}


def _hosts(number: int) -> tuple[str, ...]:
    return tuple(f"node{place:03d}" for place in range(number))


_SAVES = Routine(save_every=360)
_ASYNC = Routine(save_every=1500, save_s=200.0, blocking_s=3.0)
_OFTEN = Routine(save_every=90, save_s=120.0, blocking_s=3.0)
_EVALUATES = Routine(save_every=400, save_s=120.0, evaluate_every=2000)
_BASE = JobPlan(routine=_SAVES)

SHAPES: Mapping[str, Shape] = {
    "steady": Shape(
        "16 ranks, steps of 10 s, synchronous saves of 3 min", replace(_BASE, hosts=_hosts(4)), scripts.simply
    ),
    "short_steps": Shape(
        "steps of 0.8 s, saves beside the training",
        replace(_BASE, per_host=2, step_time_s=0.8, routine=_ASYNC, noise=0.03),
        scripts.simply,
    ),
    "long_steps": Shape(
        "steps of 120 s, compile of 10 min",
        replace(_BASE, step_time_s=120.0, compile_s=600.0, routine=Routine(save_every=30)),
        scripts.simply,
    ),
    "evaluates": Shape("evaluations of 10 to 25 min", replace(_BASE, routine=_EVALUATES), scripts.simply),
    "rank_0_evaluates": Shape(
        "rank 0 evaluates, the others wait",
        replace(_BASE, routine=replace(_EVALUATES, evaluate_ranks=(0,))),
        scripts.simply,
    ),
    "restarts": Shape(
        "two crashes with rework, one node swapped; saves often, or its day would rightly be time lost",
        replace(_BASE, compile_s=300.0, routine=_OFTEN),
        scripts.restarts,
    ),
    "resized": Shape(
        "fewer hosts from noon on, all again later", replace(_BASE, hosts=_hosts(3)), scripts.resized
    ),
    "heavy_tails": Shape(
        "step times of Student's t, and a drift of 4 %",
        replace(_BASE, noise=0.04, heavy_tailed=True),
        scripts.drifts,
    ),
    "longer_sequences": Shape("steps longer by 30 % for an hour", _BASE, scripts.longer_sequences),
    "odd_numerics": Shape(
        "gradients spike, the scaler skips", replace(_BASE, step_time_s=6.0), scripts.odd_numerics
    ),
    "every_10th": Shape(
        "every tenth step is told", replace(_BASE, step_time_s=6.0, log_every=10), scripts.simply
    ),
    "late_writers": Shape(
        "single ranks are read minutes late, the others in bursts",
        replace(
            _BASE,
            late_s={1: 45.0, 6: 60.0},
            burst_s=dict.fromkeys(range(8), 30.0),
        ),
        scripts.simply,
    ),
    "clocks": Shape(
        "clocks minutes apart, one jumps, one is slewed",
        replace(
            _BASE,
            hosts=_hosts(4),
            per_host=2,
            clocks=_clocks(
                HostClock(12.0, slew_t=START_T + 5 * _HOUR_S, slew_s=-12.0),
                HostClock(-290.0),
                HostClock(400.0, jump_t=START_T + 10 * _HOUR_S, jump_s=-400.0),
                HostClock(0.0, jump_t=START_T + 15 * _HOUR_S, jump_s=600.0),
            ),
        ),
        scripts.simply,
    ),
    "odd_hardware": Shape(
        "users' XIDs, corrected errors, heat, a profiler, a kill", _BASE, scripts.odd_hardware
    ),
    "power_capped": Shape("clocks that wander below a power cap", _BASE, scripts.power_capped),
    "finished_early": Shape(
        "ends at noon, its ranks minutes apart, and stays there", _BASE, scripts.finished_early
    ),
    "one_after_another": Shape(
        "other jobs' faults before and after it",
        _BASE,
        scripts.one_job_after_another,
        {"started": START_T + _HOUR_S},
    ),
    "stages": Shape(
        "pipeline stages with more and less to do",
        replace(_BASE, stages=2, hosts=_hosts(2)),
        scripts.simply,
        {"parallelism": {"dp": 4, "tp": 1, "pp": 2, "cp": 1, "ep": 1}},
    ),
    "slow_to_start": Shape(
        "twenty minutes of start-up",
        replace(_BASE, start_up_s=1200.0, compile_s=480.0, routine=_OFTEN),
        scripts.slow_to_start,
    ),
    "compiles_in_steps": Shape(
        "compiles in its first step, and again at noon", _BASE, scripts.cannot_compile_ahead
    ),
}


def healthy_day(name: str, seed: int, hours: float = 24.0) -> Day:
    """A day in one of `SHAPES`; raises KeyError for another name."""
    shape = SHAPES[name]
    until_t = shape.plan.start_t + hours * _HOUR_S
    return told_day(
        name,
        seed,
        shape.plan,
        lambda job: shape.script(job, until_t),
        run=shape.run,
        until_t=until_t,
    )
