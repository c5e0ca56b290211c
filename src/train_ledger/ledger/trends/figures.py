"""Which figures does the fold keep of how a run's speed develops?

All are as of the newest steps, not of the moment of the look: a run that stands still, saves or evaluates has
none that change. Times are on the clock of rank 0's host.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Fragmented", "Outlier", "Speed", "Spike", "StepTimes"]


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The median step time of the last minutes beside that of an earlier hour of the run, to about 1 %.

    Only steady steps count, none of the first ones of an attempt, none that saved or followed a pause.
    `usual_s` is the median of the steps of the hour that ended 20 min before the last step, or of as much
    more as it takes to see enough steps; where that hour was not steady, what three quarters of its steps did
    not exceed. `recent` and `usual` are from how many lines, `t` is when the last step was completed.
    """

    recent_s: float
    usual_s: float
    recent: int
    usual: int
    t: float

    @property
    def ratio(self) -> float:
        return self.recent_s / self.usual_s


@dataclass(frozen=True, slots=True)
class Spike:
    """The last gradient norm that was far above the `median` of those before."""

    step: int
    t: float
    grad_norm: float
    median: float


@dataclass(frozen=True, slots=True)
class Fragmented:
    """By how much a rank's retries of allocation and its inactive split memory grew within the window."""

    retries: float
    inactive_bytes: float


@dataclass(frozen=True, slots=True)
class Outlier:
    """A rank whose own work takes longer than that of its peers, by every gate.

    `ratio` is its own work to the median of its peers' in the same step, in the median; `share` in how much
    of the last steps it was far off; `impact` what it adds to a step, as a share of it.
    """

    rank: int
    host: str | None
    ratio: float
    share: float
    impact: float


@dataclass(frozen=True, slots=True)
class Speed:
    """How the run's speed develops; None, and none, where that cannot be said.

    `mfu` is the best part, in percent, of the last `mfu_window_s` of steps of the current attempt, up to
    `mfu_t`, known once the attempt has lasted for as long; `mfu_baseline` is what the run calls usual, by
    run.json, else by the ranks' own lines.
    """

    step_times: StepTimes | None = None
    mfu: float | None = None
    mfu_t: float | None = None
    mfu_baseline: float | None = None
    spike: Spike | None = None
    outliers: tuple[Outlier, ...] = ()
