"""What is a job like before anything happens to it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from train_ledger.chaos.days.clock import HostClock

__all__ = ["DAY_S", "START_T", "JobPlan", "Routine"]

START_T = 1_800_000_000.0
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Routine:
    """What a job does again and again: checkpoints and evaluations, by steps.

    A save lasts `save_s`, of which the training stands `blocking_s` (None: all of it). `evaluate_ranks` None:
    all of them evaluate.
    """

    save_every: int = 0
    save_s: float = 180.0
    blocking_s: float | None = None
    evaluate_every: int = 0
    evaluate_s: tuple[float, float] = (600.0, 1500.0)
    evaluate_ranks: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job of `hosts` × `per_host` ranks that takes a step every `step_time_s`.

    `noise` is the spread of the step time and `heavy_tailed` whether it is Student's t with 3 degrees of
    freedom. `log_every` steps a line is written. `late_s` says of single ranks how late what they write can
    be read, `burst_s` after how many seconds all of them are written on. `stages` are pipeline stages, the
    first of which has less to do than the last.
    """

    hosts: tuple[str, ...] = ("node000", "node001")
    per_host: int = 4
    step_time_s: float = 10.0
    noise: float = 0.01
    heavy_tailed: bool = False
    log_every: int = 1
    stages: int = 1
    routine: Routine = field(default_factory=Routine)
    start_up_s: float = 60.0
    compile_s: float = 120.0
    clocks: Mapping[str, HostClock] = field(default_factory=dict)
    late_s: Mapping[int, float] = field(default_factory=dict)
    burst_s: Mapping[int, float] = field(default_factory=dict)
    look_every_s: float = 30.0
    start_t: float = START_T
