"""How does the pace of the whole run develop, over its attempts?

In synchronous training one rank tells it, so only the lowest ones of each attempt that told a figure keep its
history: which they are does not depend on the order in which ranks are read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from statistics import median
from typing import TypeVar

from train_ledger.config import Alerts
from train_ledger.facts import PlainStep, Step
from train_ledger.ledger.pace import Timing, timings
from train_ledger.ledger.trends.figures import Spike, StepTimes
from train_ledger.ledger.trends.grad_norms import GradNorms
from train_ledger.ledger.trends.mfu import MfuTrend, is_mfu
from train_ledger.ledger.trends.slots import can_seat, seat
from train_ledger.ledger.trends.step_times import FEWEST_RECENT, PaceTrend, Sample, quantile_s

__all__ = ["RunTrends"]

_PACE_TELLERS = 1
_MFU_TELLERS = 2
_NORM_TELLERS = 1
_ATTEMPTS = 8
_OF_LONG_STEPS = 0.75
_FRESH = 0.2
"""Of the window: by so much a rank's figures may be older than those of others to be heard."""

_Trend = TypeVar("_Trend")

Times = Callable[[int, float], float]
"""Moves a rank's time onto rank 0's clock."""


class AttemptTrends:
    """The trends of one attempt, by the ranks that tell them."""

    __slots__ = ("mfus", "norms", "paces")

    def __init__(self) -> None:
        self.paces: dict[int, PaceTrend] = {}
        self.mfus: dict[int, MfuTrend] = {}
        self.norms: dict[int, GradNorms] = {}


class RunTrends:
    """The trends of the newest attempts."""

    def __init__(self) -> None:
        self._attempts: dict[int, AttemptTrends] = {}
        self._shown: tuple[object, Sample] | None = None

    def _of(self, attempt: int) -> AttemptTrends | None:
        known = self._attempts.get(attempt)
        if known is None:
            if len(self._attempts) >= _ATTEMPTS and attempt < min(self._attempts):
                return None
            known = self._attempts[attempt] = AttemptTrends()
            if len(self._attempts) > _ATTEMPTS:
                del self._attempts[min(self._attempts)]
        return known

    # -- what is folded

    def add(self, rank: int, fact: Step, t: float, timing: Timing | None, alerts: Alerts) -> None:
        """A rank completed a step at `t`; `timing` is None where the step warmed up."""
        trends = self._of(fact.attempt)
        if trends is None:
            return
        pace = seat(trends.paces, rank, _PACE_TELLERS, lambda: PaceTrend(alerts))
        mfu, norm = fact.values.get("mfu", math.nan), fact.values.get("grad_norm", math.nan)
        mfus = _seat_if(is_mfu(mfu), trends.mfus, rank, _MFU_TELLERS, lambda: MfuTrend(alerts))
        norms = _seat_if(math.isfinite(norm), trends.norms, rank, _NORM_TELLERS, lambda: GradNorms(alerts))
        if norms is not None:
            norms.add((fact.step,), (t,), (norm,), alerts.grad_norm_factor)
        if timing is None:
            for trend in (pace, mfus):
                if trend is not None:
                    trend.warm_up()
            return
        if pace is not None:
            pace.add((t,), (timing.stride,), (timing.duration_s,), alerts)
        if mfus is not None and timing.is_plain:
            mfus.add((t,), (mfu,))

    def add_all(
        self,
        attempt: int,
        rank: int,
        steps: Sequence[PlainStep],
        times: Sequence[float],
        before: tuple[int, float],
        alerts: Alerts,
    ) -> None:
        """Steady steps in a row, all values of which are finite, were completed after the step `before`."""
        trends = self._of(attempt)
        if trends is None:
            return
        if (pace := trends.paces.get(rank)) is not None:
            strides, durations_s = timings(steps, times, *before)
            pace.add(times, strides, durations_s, alerts)
        if can_seat(trends.mfus, rank, _MFU_TELLERS):
            _add_mfus(trends.mfus, rank, steps, times, alerts)
        if can_seat(trends.norms, rank, _NORM_TELLERS):
            _add_norms(trends.norms, rank, steps, times, alerts)

    # -- what comes out

    def step_times(
        self, attempt: int, comparable: Collection[int], on_zero: Times, alerts: Alerts
    ) -> StepTimes | None:
        """The steps of the last minutes beside earlier ones, of attempts that ran on as many ranks."""
        trends = self._attempts.get(attempt)
        if trends is None or not trends.paces:
            return None
        rank = min(trends.paces)
        pace = trends.paces[rank]
        if not pace.is_warm(alerts):
            return None
        recent, usual = pace.recent(alerts), self._usual(attempt, comparable, pace, alerts)
        if recent.total() < FEWEST_RECENT or not usual:
            return None
        median_s, long_s = quantile_s(usual, 0.5), quantile_s(usual, _OF_LONG_STEPS)
        is_steady = long_s < alerts.step_regressed_factor * median_s
        return StepTimes(
            recent_s=quantile_s(recent, 0.5),
            usual_s=median_s if is_steady else long_s,
            recent=recent.total(),
            usual=usual.total(),
            t=on_zero(rank, pace.newest_t),
        )

    def _usual(self, attempt: int, comparable: Collection[int], pace: PaceTrend, alerts: Alerts) -> Sample:
        """The steps of the usual hour, and as many before it as it takes; empty where there are too few."""
        earlier = {
            number: min(trends.paces)
            for number, trends in self._attempts.items()
            if number <= attempt and number in comparable and trends.paces
        }
        paces = [self._attempts[number].paces[rank] for number, rank in earlier.items()]
        edges = pace.usual_edges(alerts)
        key = (edges, earlier, [it.newest_t for it in paces if it is not pace])
        if self._shown is None or self._shown[0] != key:
            self._shown = (key, _usual(paces, *edges, alerts.step_usual_least_steps))
        return self._shown[1]

    def mfu(self, attempt: int, on_zero: Times, alerts: Alerts) -> tuple[float, float] | None:
        """(percent, up to when): the best part of the window in this attempt, by ranks that tell it now."""
        trends = self._attempts.get(attempt)
        seats = trends.mfus.items() if trends else ()
        told = [(on_zero(rank, it.newest_t), it.best(alerts)) for rank, it in seats if it.since_t is not None]
        newest_t = max((t for t, _ in told), default=-math.inf)
        fresh = [
            best for t, best in told if best is not None and t >= newest_t - _FRESH * alerts.mfu_window_s
        ]
        return (median(fresh), newest_t) if fresh else None

    def spike(self, attempt: int, on_zero: Times) -> Spike | None:
        """The last gradient norm of this attempt that was far above those before it."""
        trends = self._attempts.get(attempt)
        if trends is None or not trends.norms:
            return None
        rank = min(trends.norms)
        seen = trends.norms[rank].spike
        return None if seen is None else replace(seen, t=on_zero(rank, seen.t))


def _seat_if(
    told: bool, seats: dict[int, _Trend], rank: int, most: int, make: Callable[[], _Trend]
) -> _Trend | None:
    return seat(seats, rank, most, make) if told else seats.get(rank)


def _add_mfus(
    seats: dict[int, MfuTrend],
    rank: int,
    steps: Sequence[PlainStep],
    times: Sequence[float],
    alerts: Alerts,
) -> None:
    mfus = [step.mfu for step in steps]
    trend = seats.get(rank)
    if trend is None and any(map(is_mfu, mfus)):
        trend = seat(seats, rank, _MFU_TELLERS, lambda: MfuTrend(alerts))
    if [True for step in steps if step.ckpt_s]:
        mfus = [None if (step.ckpt_s or 0.0) > 0 else step.mfu for step in steps]
    if trend is not None:
        trend.add(times, mfus)


def _add_norms(
    seats: dict[int, GradNorms],
    rank: int,
    steps: Sequence[PlainStep],
    times: Sequence[float],
    alerts: Alerts,
) -> None:
    norms = [step.grad_norm for step in steps]
    told = norms.count(None) < len(norms)
    trend = _seat_if(told, seats, rank, _NORM_TELLERS, lambda: GradNorms(alerts))
    if trend is not None and told:
        trend.add([step.step for step in steps], times, norms, alerts.grad_norm_factor)


def _usual(paces: Sequence[PaceTrend], first: int, last: int, least_steps: int) -> Sample:
    slots = sorted((it for pace in paces for it in pace.up_to(last)), key=lambda it: it[0], reverse=True)
    found: Sample = Counter()
    steps = 0
    for slot, count, lines in slots:
        if slot < first and steps >= least_steps:
            break
        steps += count
        found.update(lines)
    return found if steps >= least_steps else Counter()
