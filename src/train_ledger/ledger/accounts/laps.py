"""Which steps did the run complete, and when, on the clock of rank 0's host?

The run stands where at least half of its ranks stand. Since all complete a step together, one rank's steps
tell those of the run: the lowest that told nearly all of them; what is missing at its begin or its end,
others tell.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median, median_high, median_low

from train_ledger.ledger.accounts.history import History
from train_ledger.ledger.accounts.leads import Leads
from train_ledger.ledger.accounts.tape import Tape
from train_ledger.ledger.clock import Lap

__all__ = ["RunLap", "run_laps", "to_us"]

_NOW_AND_THEN = 10
"""As in `step_clock`: of so many steps such a rank tells one."""

_FEW = 2
_FEW_OF = 1000
_USUAL_STEPS = 20
_WARM_UP_STEPS = 2
_LONG_S = 10.0
_IN_A_ROW = 3


@dataclass(slots=True)
class RunLap:
    """The run's steps in one lap; `times_us` are whole microseconds on the clock of rank 0's host.

    `rank` told them; its own timers are `own_s` (nan where they tell nothing), `saved_s` as in `Tape`. `base`
    is the step that the lap began behind: the one that was loaded, as far as that is told. `is_log`: a
    trainer's log tells it, whose timer leaves out what lies between the steps.
    """

    lap: Lap
    rank: int | None
    steps: list[int]
    times_us: list[int]
    own_s: list[float]
    mfu: list[float]
    saved_s: dict[int, float]
    base: int = 0
    is_log: bool = False
    tape: Tape | None = None
    usual: Usual = field(default_factory=lambda: Usual())

    @property
    def attempt(self) -> int:
        return self.lap[0]

    @property
    def last_step(self) -> int:
        return self.steps[-1]

    @property
    def stride(self) -> int | None:
        """Usual steps from line to line; None where there is one line."""
        if len(self.steps) < 2:
            return None
        strides = [b - a for a, b in zip(self.steps[:21], self.steps[1:22], strict=False)]
        return median_high(strides)


@dataclass(slots=True)
class Usual:
    """How long steps usually take: the median of the last steady ones before a place.

    `warming_s` has the shorter of the first two, which is all that is known of a lap that got no further.
    """

    places: list[int] = field(default_factory=list)
    durations_s: list[float] = field(default_factory=list)
    earlier_s: list[float] = field(default_factory=list)
    warming_s: list[float] = field(default_factory=list)

    def at(self, place: int) -> float | None:
        """Seconds a step before this one; of the first ones what those after them took; None: not told."""
        before = bisect_right(self.places, place - 1)
        newest = self.durations_s[max(0, before - _USUAL_STEPS) : before]
        known = [*self.earlier_s, *newest][-_USUAL_STEPS:]
        if known:
            return median(known)
        later = self.durations_s[:_USUAL_STEPS] or self.warming_s
        return median_low(later) if later else None  # of two the longer may have stood

    @property
    def newest_s(self) -> list[float]:
        return [*self.earlier_s, *self.durations_s[-_USUAL_STEPS:]][-_USUAL_STEPS:]


def to_us(t: float) -> int:
    """Whole microseconds.

    >>> to_us(1796007600.25)
    1796007600250000
    """
    return round(t * 1e6)


def run_laps(history: History, leads: Leads, until_t: float) -> list[RunLap]:
    """The laps of a run in order, as far as they were completed by `until_t`."""
    until_us = to_us(until_t)
    laps = sorted({lap for tape in history.ranks.values() for lap in tape.tapes})
    found: list[RunLap] = []
    for lap in laps:
        made = _run_lap(history, leads, lap)
        reached = bisect_right(made.times_us, until_us) if made else 0
        if made is None or not reached:
            continue
        _cut(made, reached)
        found.append(made)
    return found


def _cut(lap: RunLap, reached: int) -> None:
    if reached < len(lap.steps):
        for kept in (lap.steps, lap.times_us, lap.own_s, lap.mfu):
            del kept[reached:]


def _run_lap(history: History, leads: Leads, lap: Lap) -> RunLap | None:
    tapes = _tellers({rank: it.tapes[lap] for rank, it in history.ranks.items() if lap in it.tapes}, history)
    if not tapes:
        return None
    last = median_high([it.steps[-1] for it in tapes.values()])
    whole = {rank: it for rank, it in tapes.items() if it.is_whole}
    if not whole:
        return None
    most = max(it.told for it in whole.values())
    near = [rank for rank, it in whole.items() if most - it.told <= max(_FEW, most // _FEW_OF)]
    rank = min(near, key=_order)
    made = _of(whole[rank], rank, leads.of(rank, *lap))
    made.is_log = history.by_logs or rank is None
    for other in sorted(whole, key=_order):
        _complete(made, whole[other], leads.of(other, *lap), last)
    _cut(made, bisect_right(made.steps, last))
    return made if made.steps else None


def _order(rank: int | None) -> int:
    return -1 if rank is None else rank


def _tellers(tapes: dict[int | None, Tape], history: History) -> dict[int | None, Tape]:
    """Those whose lines tell the run's steps: in a log others are named now and then, or nobody is."""
    if not tapes:
        return {}
    of_all = tapes.get(None)
    named: dict[int | None, Tape] = {rank: it for rank, it in tapes.items() if rank is not None}
    if of_all is not None and (not named or of_all.told >= max(it.told for it in named.values())):
        return {None: of_all}
    if not history.by_logs:
        return named
    most = max(it.told for it in named.values())
    return {rank: it for rank, it in named.items() if it.told * _NOW_AND_THEN >= most}


def _of(tape: Tape, rank: int | None, lead_s: float) -> RunLap:
    return RunLap(
        lap=tape.lap,
        rank=rank,
        steps=tape.steps.tolist(),
        times_us=[round((t - lead_s) * 1e6) for t in tape.times],
        own_s=tape.own_s.tolist(),
        mfu=tape.mfu.tolist(),
        saved_s=dict(tape.saved_s),
        tape=tape,
    )


def _complete(lap: RunLap, other: Tape, lead_s: float, last: int) -> None:
    """Add what another rank told before the first and behind the last step."""
    if other.steps[-1] > lap.steps[-1] and lap.steps[-1] < last:
        for place in range(bisect_right(other.steps, lap.steps[-1]), len(other.steps)):
            lap.steps.append(other.steps[place])
            lap.times_us.append(max(to_us(other.times[place] - lead_s), lap.times_us[-1]))
            lap.own_s.append(other.own_s[place])
            lap.mfu.append(other.mfu[place])
            if place in other.saved_s:
                lap.saved_s[len(lap.steps) - 1] = other.saved_s[place]
    if other.steps[0] < lap.steps[0]:
        count = bisect_right(other.steps, lap.steps[0] - 1)
        lap.steps[:0] = other.steps[:count].tolist()
        lap.times_us[:0] = [min(to_us(t - lead_s), lap.times_us[0]) for t in other.times[:count]]
        lap.own_s[:0] = other.own_s[:count].tolist()
        lap.mfu[:0] = other.mfu[:count].tolist()
        shifted = {place + count: it for place, it in lap.saved_s.items()}
        lap.saved_s = {**{p: it for p, it in other.saved_s.items() if p < count}, **shifted}


def learn_usual(laps: list[RunLap], paused: list[set[int]], stall_s: Callable[[float], float]) -> None:
    """Fill in how long steps usually take; `paused` are the places of steps that followed a pause.

    A step that stood is no usual one, by `stall_s` of the usual duration before; where several do in a row,
    steps have become so long.
    """
    earlier: list[float] = []
    for lap, skipped in zip(laps, paused, strict=True):
        usual = lap.usual = Usual(earlier_s=earlier)
        stood = 0
        for place, duration_s in _plain_s(lap, skipped):
            if place < _WARM_UP_STEPS:
                usual.warming_s = [min(duration_s, *usual.warming_s)] if usual.warming_s else [duration_s]
                continue
            if duration_s > _LONG_S and stood < _IN_A_ROW:
                before_s = usual.at(place)
                if before_s is not None and duration_s > stall_s(before_s):
                    stood += 1
                    continue
            stood = 0
            usual.places.append(place)
            usual.durations_s.append(duration_s)
        earlier = usual.newest_s


def _plain_s(lap: RunLap, skipped: set[int]) -> Iterator[tuple[int, float]]:
    """How long each step took that neither saved nor followed a pause: by its timer, or from line to line."""
    steps, times, own = lap.steps, lap.times_us, lap.own_s
    for place in range(len(steps)):
        if place in skipped or lap.saved_s.get(place, 0.0) > 0:
            continue
        duration_s = own[place]
        if place and not duration_s > 0:  # nan, too
            duration_s = (times[place] - times[place - 1]) / 1e6 / (steps[place] - steps[place - 1])
        if duration_s > 0:
            yield place, duration_s
