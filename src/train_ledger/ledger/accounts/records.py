"""Of which parts do the accounts of a run consist?

Frozen records that `ledger.accounts` makes and that cost, postmortem and reports read. All times are unix
seconds on the clock of rank 0's host; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CATEGORIES", "PARTS", "Accounts", "Checkpointing", "Interruption", "Recovery", "Span"]

CATEGORIES = (
    "productive",
    "rework",
    "checkpoint",
    "evaluation",
    "start_up",
    "stalled",
    "down",
    "unknown",
)
"""Where the time of a run went; each second is in exactly one of them, and they sum to the wall time."""

_MICROSECONDS = 6
"""Digits behind the point: the accounts are kept in whole microseconds."""

PARTS = ("detect", "dump", "decide", "restart", "load", "redo")
"""Of what a recovery consists, in the order of time; each begins where the one before it ended."""


@dataclass(frozen=True, slots=True)
class Span:
    """Time of one category, from `since_t` to `until_t`, in one attempt with so many ranks.

    `attempt` is None where none was alive, `world_size` where it is not known how many GPUs were held.
    `first_step` and `last_step` are the steps completed in it; `why` says what puts it there.
    """

    category: str
    since_t: float
    until_t: float
    attempt: int | None = None
    world_size: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    why: str = ""

    @property
    def duration_s(self) -> float:
        return round(self.until_t - self.since_t, _MICROSECONDS)


@dataclass(frozen=True, slots=True)
class Interruption:
    """The run stopped making progress: its last step before was completed at `t`.

    `attempt` is the one that was interrupted, `cause` what ended it as far as the facts say (an exception, a
    signal, a fault's code, "unknown").
    """

    t: float
    attempt: int
    step: int | None
    cause: str = "unknown"


@dataclass(frozen=True, slots=True)
class Recovery:
    """How the run came back from an interruption.

    `parts_s` maps each of `PARTS` to its seconds, None where nothing tells where it began or ended.
    `redone_steps` counts the steps done once more. `loss_joins_on` says whether the loss of the steps done
    again is what it was, `data_agrees` whether the data's position was; None where neither can be told.
    `over_t` is when the step once reached was passed, None while it has not been.
    """

    interruption: Interruption
    attempt: int
    began_t: float
    first_step_t: float | None = None
    over_t: float | None = None
    resumed_step: int | None = None
    redone_steps: int = 0
    parts_s: Mapping[str, float | None] = field(default_factory=dict)
    loss_joins_on: bool | None = None
    data_agrees: bool | None = None


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """How the run saves: medians over its own saves, None where there are too few to tell.

    `interval_s` from one save to the next within an attempt, `interval_steps` likewise in steps, `blocking_s`
    what one save costs the training (the δ of Young's formula).
    """

    saves: int = 0
    failed: int = 0
    interval_s: float | None = None
    interval_steps: float | None = None
    blocking_s: float | None = None


@dataclass(frozen=True, slots=True)
class Accounts:
    """Where the time and the GPU-hours of a run went, from `since_t` to `until_t`.

    `seconds` maps each of `CATEGORIES` to its seconds; in whole microseconds they sum to `wall_s` exactly.
    `gpu_hours` is the same in GPU-hours, by the world size at each time; None where it was not known or the
    ranks have no GPU. `effective` maps a window ("1h", "24h", "run") to the productive share of it, dead time
    counted as lost. `mtbi_s` is the mean time between interruptions: the time that was not lost over their
    number. `mfu` is the mean of the reported MFU in percent over productive time. `consumed_per_s` is how
    much of consumed_tokens or consumed_samples the newest attempt adds in a second. `spans` are in the order
    of time, no gaps.
    """

    run: str
    since_t: float
    until_t: float
    seconds: Mapping[str, float]
    gpu_hours: Mapping[str, float] | None = None
    cost: float | None = None
    price_per_gpu_hour: float | None = None
    currency: str = "USD"
    world_size: int | None = None
    effective: Mapping[str, float | None] = field(default_factory=dict)
    mfu: float | None = None
    steps: int = 0
    step_time_s: float | None = None
    consumed_per_s: Mapping[str, float] = field(default_factory=dict)
    interruptions: tuple[Interruption, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    mtbi_s: float | None = None
    checkpointing: Checkpointing = field(default_factory=Checkpointing)
    spans: tuple[Span, ...] = ()
    not_observed: tuple[str, ...] = ()

    @property
    def wall_s(self) -> float:
        return round(self.until_t - self.since_t, _MICROSECONDS)
