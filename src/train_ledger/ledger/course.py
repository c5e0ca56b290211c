"""Which way has the run gone: how much of it was progress, over which data, and did it come back as it was?

One rank is enough to say, since all complete their steps together: of each attempt the lowest that completed
one. A rank's steps may be folded before those that a lower one wrote earlier; then that one takes over, and
what was made of the other is given up. So neither the order in which ranks are read nor a new numbering of
ranks at a restart makes a difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from train_ledger.facts import PlainStep, Step
from train_ledger.ledger.attempts import AttemptFold
from train_ledger.ledger.clock import Lap
from train_ledger.ledger.effective import Before, StepTimes, are_even
from train_ledger.ledger.positions import Positions, Regress, regress
from train_ledger.ledger.rank import RankFold
from train_ledger.ledger.recovery import LapLosses
from train_ledger.ledger.state import DataRegress, Productive, Recovered

__all__ = ["Course"]

_LAPS = 256
_LAPS_WITH_DATA = 16


class Course:
    """The laps of all attempts; `window_s` is for how long it is known when how much was done."""

    def __init__(self, window_s: float) -> None:
        self._minutes = int(window_s // 60) + 3
        self._leaders: dict[int, int] = {}
        self._ended: set[int] = set()
        self._times: dict[Lap, StepTimes] = {}
        self._data: dict[Lap, Positions] = {}
        self._losses: dict[Lap, LapLosses] = {}
        self._given_up = 0
        self._reached: int | None = None
        self._shown: dict[tuple[Lap, int, int], Regress | None] | None = None

    # -- what is folded

    def follows(self, rank: int, attempt: int) -> bool:
        """Whether the steps of this rank tell of the attempt."""
        leader = self._leaders.get(attempt)
        return leader is None or rank <= leader

    def before(self, rank: RankFold) -> tuple[Lap, Before | None]:
        """Where a rank stands, to be asked before it is told of a step."""
        lap = (rank.attempt, rank.lap)
        if rank.step is None or rank.step_t is None:
            return lap, None
        pace = rank.pace
        return lap, Before(rank.step, rank.step_t, rank.phases.paused, pace.is_steady, pace.usual_step_s)

    def completed(self, rank: RankFold, fact: Step, lap: Lap, before: tuple[Lap, Before | None]) -> None:
        """A rank that is followed completed a step; `before` is where it stood."""
        if rank.step_t is None or not math.isfinite(rank.step_t):
            return
        self._lead(rank.rank, lap[0])
        times = self._times.get(lap)
        if times is None:
            times = self._times[lap] = StepTimes(fact.step)
            self._data[lap], self._losses[lap] = Positions(), LapLosses()
        earlier = before[1] if before[0] == lap else None
        times.add(
            fact.step,
            rank.step_t,
            fact.values.get("ckpt_s", 0.0),
            earlier,
            rank.pace.usual_step_s,
            rank.pace.told,
            since_t=_since_t(rank, before),
        )
        times.forget(self._minutes)
        if lap in self._data:
            self._data[lap].add(fact.step, rank.step_t, fact.values)
            self._losses[lap].add(fact.step, fact.values.get("loss"))
        self._give_up()

    def _lead(self, rank: int, attempt: int) -> None:
        self._ended.discard(attempt)
        if self._leaders.get(attempt) == rank:
            return
        self._leaders[attempt] = rank
        for lap in [lap for lap in self._times if lap[0] == attempt]:
            del self._times[lap]
            self._data.pop(lap, None)
            self._losses.pop(lap, None)
        self._shown = None  # another rank's lines may be as many, and say something else
        for losses in self._losses.values():
            losses.look_again()

    def are_even(self, rank: RankFold, times: Sequence[float]) -> bool:
        """Whether steps of a rank that is followed, at these times, may be folded at once."""
        lap = self._times.get((rank.attempt, rank.lap))
        return lap is not None and lap.is_settled and rank.step_t is not None and are_even(times, rank.step_t)

    def went_on(
        self, lap: Lap, steps: Sequence[PlainStep], numbers: Sequence[int], times: Sequence[float], t: float
    ) -> None:
        """As `completed` for steps for which `are_even` holds; `t` is when the one before was completed."""
        self._times[lap].add_even(steps, times, t)
        self._times[lap].forget(self._minutes)
        if lap in self._data:
            self._data[lap].add_all(steps, numbers, times)
            self._losses[lap].add_all(steps, numbers)

    def ended(self, rank: int, attempt: int) -> None:
        """A rank said run_end."""
        if self._leaders.get(attempt) == rank:
            self._ended.add(attempt)

    def _give_up(self) -> None:
        while len(self._data) > _LAPS_WITH_DATA:
            oldest = min(self._data)
            self._given_up += self._regress_of(oldest) is not None
            del self._data[oldest], self._losses[oldest]
        if len(self._times) > _LAPS:
            oldest = min(self._times)
            self._reached = max(self._times.pop(oldest).last_step, self._reached or 0)

    # -- what comes out

    def productive(
        self, t: float, window_s: float, attempts: Mapping[int, AttemptFold], leads_s: Mapping[int, float]
    ) -> Productive | None:
        """What is known at `t`, on rank 0's clock; None where nothing was heard of the run.

        A run that came to its end and is taken up again begins anew: nobody lost the time between.
        """
        first = 1 + max((number for number in self._ended if number < max(attempts)), default=-1)
        since_t = self._since_t(first, attempts, leads_s)
        if since_t is None:
            return None
        total_us = early_us = 0.0
        reached = self._reached
        for lap, times in sorted(self._times.items()):
            if lap[0] >= first:
                lead_s = leads_s.get(self._leaders[lap[0]], 0.0)
                total_us += times.productive_us(reached)
                early_us += times.productive_us_at(t - window_s + lead_s, reached)
            reached = times.last_step if reached is None else max(reached, times.last_step)
        passed_s = max(1.0, min(window_s, t - since_t))
        fraction = min(1.0, (total_us - early_us) / 1e6 / passed_s)
        return Productive(since_t, total_us / 1e6, round(fraction, 4))

    def _since_t(
        self, first: int, attempts: Mapping[int, AttemptFold], leads_s: Mapping[int, float]
    ) -> float | None:
        """Since when those who lead were heard; before the first step, anybody."""
        leaders = {rank for number, rank in self._leaders.items() if number >= first}
        began = [attempt.began_t for number, attempt in attempts.items() if number >= first]
        times = [
            t - leads_s.get(rank, 0.0)
            for known in began
            for rank, t in known.items()
            if rank in leaders or not leaders
        ]
        return min(times, default=None)

    def regressed(self, leads_s: Mapping[int, float]) -> tuple[int, tuple[DataRegress, ...]]:
        """How many laps went on at other data than those before them had stood at, and the newest of them."""
        told = [(lap, self._regress_of(lap)) for lap in sorted(self._data)]
        found = tuple(
            DataRegress(lap[0], it[0], it[1] - leads_s.get(self._leaders[lap[0]], 0.0), it[2], it[3])
            for lap, it in told
            if it is not None
        )
        return self._given_up + len(found), found

    def _regress_of(self, lap: Lap) -> Regress | None:
        """Against the newest lap before it that covers its begin and has not departed itself."""
        new = self._data[lap]
        if not new.segments:
            return None
        begin = new.segments[0]
        for other in sorted((it for it in self._data if it < lap), reverse=True):
            old = self._data[other]
            if old.covers(begin) and self._regress_of(other) is None:
                return self._compared(lap, new, old)
        return None

    def _compared(self, lap: Lap, new: Positions, old: Positions) -> Regress | None:
        # What lies beyond the steps of the earlier lap says nothing more.
        beyond = new.last_step > old.last_step and new.segments[0].is_line
        key = (lap, -1 if beyond else new.told, old.told)
        if self._shown is None or len(self._shown) > _LAPS:
            self._shown = {}
        if key not in self._shown:
            self._shown[key] = regress(new, old)
        return self._shown[key]

    def recovered(self) -> Recovered | None:
        """How the newest lap goes on from those before it; None where there are none, or it is given up."""
        lap = max(self._losses, default=None)
        earlier = [it.last_step for number, it in self._times.items() if lap is not None and number < lap]
        reached = max([*earlier, *([] if self._reached is None else [self._reached])], default=None)
        if lap is None or reached is None:
            return None
        times, losses = self._times[lap], self._losses[lap]
        found = Recovered(*lap, times.first_step, reached, losses.redone(reached))
        return self._held_against(found, lap) if times.last_step > reached else found

    def _held_against(self, found: Recovered, lap: Lap) -> Recovered:
        """The same recovery, which is over, with what it is held against."""
        before = [self._losses[it] for it in sorted(self._losses) if it < lap]
        loss, agrees = self._losses[lap].joining(before, found.reached), self._data_agrees(lap)
        missing = [loss.why] if loss.why else []
        missing += ["data: its position is not told before and after the restart"] if agrees is None else []
        return replace(
            found,
            is_over=True,
            loss_joins_on=loss.joins_on,
            loss_compared=loss.compared,
            loss_difference=loss.difference,
            loss_tolerance=loss.tolerance,
            data_agrees=agrees,
            not_observed=tuple(missing),
        )

    def _data_agrees(self, lap: Lap) -> bool | None:
        """None where nothing tells, as where the lines of this lap or of those before it have no position."""
        new = self._data[lap]
        if not new.segments or not new.segments[0].is_line:
            return None
        if not any(old.covers(new.segments[0]) for number, old in self._data.items() if number < lap):
            return None
        return self._regress_of(lap) is None


def _since_t(rank: RankFold, before: tuple[Lap, Before | None]) -> float:
    """Before when a rank did not begin the step that it has completed: its last one, or its first line."""
    (attempt, _), last = before
    if attempt == rank.attempt and last is not None:
        return last.t
    return rank.began_t or rank.step_t or 0.0
