"""What is known of a run at one moment?

Frozen records that the fold makes and that everything above reads. All times are unix seconds on the clock
of rank 0's host; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from train_ledger.answer import STATES
from train_ledger.ledger.hardware.records import GpuState, PortState
from train_ledger.ledger.trends.figures import Fragmented, Speed

__all__ = [
    "STATES",
    "Attempt",
    "Checkpoints",
    "DataRegress",
    "FailedSave",
    "GpuState",
    "PortState",
    "RankState",
    "Recovered",
    "RunState",
]


@dataclass(frozen=True, slots=True)
class RankState:
    """One rank in the run's current attempt.

    `step` and `step_t` are the last completed step and when it was completed (`first_step_t`: the first one
    of the attempt); `heard_t` is its last line of any kind; `phase` the innermost phase that is open.
    `worker_server` is where torch's own server of this rank answers ("unix:/path" or "tcp:127.0.0.1:port").
    `gone_t` is when its process was found dead, `ended` that it said run_end; `exception` is what it raised
    and nobody caught, `signal` the first signal that was to end it, `raised_t` and `signal_t` are when.
    `nonfinite_total` counts the steps of this attempt with a loss that was not finite (or vanished beside a
    non-finite gradient norm); `nonfinite_since_t` and `nonfinite_since_step` are when and which the first was
    that 100 finite ones have not followed, `nonfinite_step` and `nonfinite_t` which and when the last was.
    `values` are those of the last completed step: of gauges its own alone, of counters the last that this
    attempt told.
    `speaks_for_all` says that this is no rank but what a log tells of the job without naming one: nobody is
    to be blamed for it.
    `data_wait_fraction` is what it waited for data, as a share of its steps in the last minutes; `fragmented`
    how its memory fell to pieces within the window, None where it did not.
    """

    rank: int
    attempt: int = 0
    host: str | None = None
    gpu: int | None = None
    uuid: str | None = None
    pci: str | None = None
    pid: int | None = None
    worker_server: str | None = None
    step: int | None = None
    step_t: float | None = None
    first_step_t: float | None = None
    heard_t: float | None = None
    phase: str | None = None
    phase_since_t: float | None = None
    ended: bool = False
    gone_t: float | None = None
    exception: str | None = None
    raised_t: float | None = None
    signal: int | None = None
    signal_t: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    nonfinite_total: int = 0
    nonfinite_since_t: float | None = None
    nonfinite_since_step: int | None = None
    nonfinite_step: int | None = None
    nonfinite_t: float | None = None
    speaks_for_all: bool = False
    data_wait_fraction: float | None = None
    fragmented: Fragmented | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of the run by its launcher."""

    number: int
    started_t: float
    first_step: int | None = None
    first_step_t: float | None = None
    last_step: int | None = None


@dataclass(frozen=True, slots=True)
class FailedSave:
    t: float
    step: int | None
    error: str


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Saves of the whole run: a save that several ranks report counts once, by its step.

    `durations_s` and `saved_t` hold the last 20 successful saves, oldest first. `failed` are those of the
    last few hundred saves that failed, and `failed_before` counts the earlier ones.
    """

    open_since_t: float | None = None
    saved_step: int | None = None
    saved_t: tuple[float, ...] = ()
    durations_s: tuple[float, ...] = ()
    failed: tuple[FailedSave, ...] = ()
    failed_before: int = 0


@dataclass(frozen=True, slots=True)
class Productive:
    """How much time brought the run further than ever before.

    `total_s` seconds did since `since_t`, from when on that is known; `fraction` is their share of the last
    `effective_window_s`, or of the time since `since_t` where that is shorter.
    """

    since_t: float
    total_s: float
    fraction: float


@dataclass(frozen=True, slots=True)
class DataRegress:
    """After a restart the run stood at `position` (samples, or tokens) at `step`; it had stood at `was`."""

    attempt: int
    step: int
    t: float
    position: int
    was: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """How the run goes on behind the last restart, or behind the last time its steps went back (`lap` > 0).

    Its first step then was `resumed_step`, and `reached` the one it had come to before; `redone_steps` were,
    or are yet, to be done once more, and `is_over` says that it has passed them. Only then the rest is known:
    whether the loss of `loss_compared` of them is what it was (by the median difference and the largest that
    joins on), and whether the data stands where it stood at the same steps. None is "not observed", and
    `not_observed` says why.
    """

    attempt: int
    lap: int
    resumed_step: int
    reached: int
    redone_steps: int
    is_over: bool = False
    loss_joins_on: bool | None = None
    loss_compared: int = 0
    loss_difference: float | None = None
    loss_tolerance: float | None = None
    data_agrees: bool | None = None
    not_observed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as known at `t`.

    `step` and `last_step_t` are the step clock: the median over the ranks that have completed a step in
    this attempt, so that neither one rank that runs on nor one that fell silent moves it. Before the first
    step `last_step_t` is None and `attempts[-1].started_t` is what a stall is measured from.
    `stall_threshold_s` is the limit that `stalled_for_s` is held against now. `phase` is the phase that sets
    it, open since `phase_since_t` on at least one rank that has come as far as the run, since the others wait
    for that rank; None outside the phases that raise the limit. `since_t` is since when the run has been in
    `state`; of a stall, when the last step was completed.
    `ranks` holds those that were heard in this attempt. `by_logs` says that logs tell of them, in which most
    are not named at all and some now and then: their silence means nothing. `is_part` says that only the
    ranks of some hosts are followed: of the others nothing is known. `speed` is how its pace develops.
    `unreadable` says why the run cannot be read now, since `unreadable_since_t`; whoever follows it fills it
    in, since no fact can tell.
    `productive` is None where nothing was heard of the run. `data_regress_total` counts how often it went on
    at other data than it had stood at, and `data_regresses` are the newest of these.
    `recovery` is how it came back from the last restart, None where no step was completed before one.
    `gpus` and `ports` are those that are read, and GPUs of ranks of which a kernel speaks; by host and index.
    `not_observed` says what the hardware of each host does not tell.
    """

    run: str
    t: float
    state: str = "starting"
    since_t: float | None = None
    world_size: int | None = None
    attempt: int = 0
    step: int | None = None
    last_step_t: float | None = None
    p50_step_time_s: float | None = None
    stall_threshold_s: float = 1800.0
    phase: str | None = None
    phase_since_t: float | None = None
    finished: bool = False
    ranks: Mapping[int, RankState] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    by_logs: bool = False
    is_part: bool = False
    productive: Productive | None = None
    unreadable: str | None = None
    unreadable_since_t: float | None = None
    data_regress_total: int = 0
    data_regresses: tuple[DataRegress, ...] = ()
    recovery: Recovered | None = None
    gpus: tuple[GpuState, ...] = ()
    ports: tuple[PortState, ...] = ()
    not_observed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    speed: Speed = field(default_factory=Speed)

    @property
    def stalled_for_s(self) -> float:
        """Seconds since the step clock last moved, or since the attempt began where it never has."""
        if self.last_step_t is not None:
            return max(0.0, self.t - self.last_step_t)
        return max(0.0, self.t - self.attempts[-1].started_t) if self.attempts else 0.0
