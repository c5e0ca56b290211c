"""What is known of who drags?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Excess", "Kind", "Phase", "Waits", "Who"]

Kind = Literal["rank", "host", "stage", "sequence", "gc", "transient", "nobody", "cannot_tell"]
Phase = Literal["compute", "data", "gc", "logging", "checkpoint", "host"]
Waits = Literal["confirm", "contradict", "not_told"]


@dataclass(frozen=True, slots=True)
class Excess:
    """By how much one rank's own work was longer than its peers' in the newest steps.

    `ratio` to theirs and `excess_s` beyond it (median of the steps), the `share` of the steps in which it was
    longer by more than the least that counts, `impact` as a share of the step; `parts` says in which phases
    (seconds), `phase` in which most; `waits_less_s` how much less it waited in collectives than its peers,
    None where nobody tells; `since_step` from when on.
    """

    rank: int
    host: str | None
    ratio: float
    share: float
    excess_s: float
    impact: float
    phase: Phase
    parts: Mapping[Phase, float] = field(default_factory=dict)
    waits_less_s: float | None = None
    since_step: int | None = None


@dataclass(frozen=True, slots=True)
class Who:
    """Who drags, if anybody does.

    rank, host: `ranks` are the culprits, `hosts` those that are slow as a whole; stage: all ranks of `stage`
    have more work than the others', nobody is to blame; sequence, gc: ranks take turns, by the length of
    their sequences, by their garbage collection; transient: somebody was slow and is not any more; nobody:
    all do the same; cannot_tell: `reason` says why. `ranks` is empty but for rank and host, `excesses` then
    are what was seen. `victims` wait for the culprits. `cost` is the share of the steps' time that is lost,
    `steps` how many steps were judged. `otherwise` is what the figures would say but for the doubt that
    `reason` tells: if something else says that it is these ranks, it is. `by_log`: a report in the log says
    so, and `reason` what it says.
    """

    kind: Kind
    reason: str
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    phase: Phase | None = None
    excesses: tuple[Excess, ...] = ()
    victims: tuple[int, ...] = ()
    stage: int | None = None
    cost: float = 0.0
    since_step: int | None = None
    waits: Waits = "not_told"
    steps: int = 0
    otherwise: Who | None = None
    by_log: bool = False
