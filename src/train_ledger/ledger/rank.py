"""What do one rank's own lines add up to?

Lines of a rank are folded in the order in which it wrote them; how those of different ranks are interleaved
makes no difference to the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from train_ledger.config import Alerts
from train_ledger.facts import Event, Fault, PlainStep, Step
from train_ledger.fields import read_number
from train_ledger.ledger.clock import Lap, RankClock
from train_ledger.ledger.counters import newest_counters, with_counters
from train_ledger.ledger.losses import Losses
from train_ledger.ledger.pace import Pace, Timing
from train_ledger.ledger.phases import PhaseFold
from train_ledger.ledger.rank_process import RankProcess
from train_ledger.ledger.state import RankState
from train_ledger.ledger.trends.rank_trends import RankTrends

__all__ = ["RankFold"]


class RankFold:
    """The accumulator of one rank. All times in it are on its host's clock, carried over jumps.

    `speaks_for_all` as in `RankState`; `written_every_s` is after how long its log is written on, where lines
    lie in a buffer until then. `timing` is that of the last step that was folded by itself.
    """

    def __init__(self, rank: int, alerts: Alerts) -> None:
        self.rank = rank
        self.clock = RankClock()
        self.host: str | None = None
        self.heard_t: float | None = None
        self.speaks_for_all = False
        self.pace = Pace()
        self.phases = PhaseFold()
        self.trends = RankTrends(alerts)
        self._shown: tuple[float, RankState] | None = None
        self._begin(-1)

    def _begin(self, attempt: int) -> None:
        self.attempt, self.lap = attempt, 0
        self.began_t: float | None = None
        self.process = RankProcess()
        self.step: int | None = None
        self.step_t: float | None = None
        self.first_step_t: float | None = None
        self.written_every_s = 0.0
        self.reported_t: float | None = None
        self.reported_every_s = 0.0
        self.timing: Timing | None = None
        self.pace.begin_attempt()
        self.phases.begin_attempt()
        self.trends.begin_attempt()
        self.values: Mapping[str, float] = {}
        self.losses = Losses()

    # -- what is folded

    def add_step(self, fact: Step) -> Lap | None:
        """Fold a step; returns its lap where it moved this rank's step clock on, else None."""
        if not self._joins(fact.attempt, fact.host):
            return None
        self._shown = None
        previous, previous_t = self.step, self.step_t
        t = self.clock.of_step(fact, previous_t, paused=self.phases.paused)
        self._hear(t)
        self.losses.add(fact.values, fact.step, t)
        timing = None
        if previous is not None and previous_t is not None:
            if fact.step == previous:
                self.values = {**self.values, **fact.values}
                return None
            if fact.step < previous:
                if t <= previous_t:
                    return None  # it comes late
                self._go_back()
            else:
                interval_s, stride = max(0.0, t - previous_t), fact.step - previous
                timing = self.pace.timed(fact, interval_s, stride, paused=self.phases.paused)
            t = max(t, previous_t)
        self.timing = timing
        self._complete(fact, t)
        return (self.attempt, self.lap)

    def _joins(self, attempt: int, host: str | None) -> bool:
        """Whether the fact is of the current attempt, which a higher one becomes."""
        if attempt < self.attempt:
            return False
        if attempt > self.attempt:
            self.clock.new_attempt(same_host=host is None or host == self.host)
            self._begin(attempt)
            self.host = None  # a restart may have put it elsewhere
        if host is not None:
            self.host = host
        return True

    def _hear(self, t: float) -> None:
        self.heard_t = t if self.heard_t is None else max(t, self.heard_t)
        if self.began_t is None:
            self.began_t = t

    def _go_back(self) -> None:
        """The step went back within an attempt: a restart that nobody counted."""
        self.lap += 1
        self.pace.went_back()
        self.trends.begin_attempt()
        self.values = {}
        self.losses.went_back()

    def _complete(self, fact: Step, t: float) -> None:
        if self.first_step_t is None:
            self.first_step_t = t
            self.pace.warm_up_s = t - (self.began_t if self.began_t is not None else t)
        self.step, self.step_t = fact.step, t
        self.values = with_counters(fact.values, self.values)
        steady = self.timing is not None and not self.phases.paused
        self.trends.add(fact.step, t, fact.values, steady=steady)
        self.pace.completed()
        self.phases.step_completed()
        self.process.completed_step(t)

    # -- many steps at once

    def carried(self, steps: Sequence[PlainStep]) -> list[float] | None:
        """The carried times of these steps of the current attempt, where each just goes on from the last.

        None where one of them has to be looked at by itself, with `add_step`.
        """
        if self.step is None or self.step_t is None or self.phases.paused or not self.pace.is_steady:
            return None
        return self.clock.carried(steps, self.step, self.step_t) if steps[0].step > self.step else None

    def go_on(self, steps: Sequence[PlainStep], times: Sequence[float], following: Step) -> Lap:
        """Fold steps at their `carried` times; what the step that follows them says anyway is left to it."""
        if self.step is not None and self.step_t is not None:
            self.pace.timed_at_once(steps, times, self.step, self.step_t)
        self.pace.completed(len(steps))
        self.losses.add_finite(steps)
        self.trends.add_all(times, steps)
        self.values = {**self.values, **newest_counters(steps, but=following.values.keys())}
        self.clock.went_on(steps[-1].step, times[-1])
        self._hear(times[-1])
        self.step, self.step_t = steps[-1].step, times[-1]
        return (self.attempt, self.lap)

    # -- what else is folded

    def add_event(self, fact: Event) -> None:
        """Fold an event; those of the process table say when they were seen, not that the rank was heard."""
        if fact.name in ("process_gone", "process_seen"):
            if fact.attempt == self.attempt:
                self._shown = None
                self.process.looked_at(fact)
            return
        if not self._joins(fact.attempt, fact.host):
            return
        self._shown = None
        t = self._time_of(fact)
        self._hear(t)
        self.phases.add(fact, t, self.step_t)
        self._heard(fact, t)

    def _heard(self, fact: Event, t: float) -> None:
        if fact.name == "run_start":
            self.clock.steady_timer = True
            self.process.start(fact.details)
        elif fact.name == "exception" and fact.details.get("fatal") is not False:
            self.process.raised(fact.details, t)
        elif fact.name == "signal":
            self.process.got_signal(fact.details.get("number"), t)
        elif fact.name == "run_end":
            self.process.ended = True
        elif fact.name == "log_every":
            self.written_every_s = read_number(fact.details.get("every_s")) or 0.0
        elif fact.name == "metrics":
            if self.reported_t is not None:
                self.reported_every_s = max(self.reported_every_s, t - self.reported_t)
            self.reported_t = t

    def _time_of(self, fact: Event) -> float:
        if fact.name not in ("phase_start", "phase_end"):
            return self.clock.of_event(fact.t)
        # A phase is written when it has lasted for a while, with the time when it began.
        return max(fact.t + self.clock.shift_s, self.step_t if self.step_t is not None else -math.inf)

    def add_fault(self, fact: Fault) -> None:
        """Fold what somebody else says of this rank: only that it raised or was killed is a rank's state."""
        if fact.t is None or not self._joins(max(fact.attempt, self.attempt), fact.host):
            return
        self._shown = None
        if fact.fault in ("exception", "oom", "killed") and self.process.exception is None:
            self.process.raised({"type": fact.fault, **fact.details}, fact.t)

    # -- what comes out

    def reported_limit_s(self, limit_s: float, factor: float) -> float:
        """From the rank's first line on, where its log reports without telling steps; 0 where it does not."""
        if self.reported_t is None or self.began_t is None:
            return 0.0
        return self.reported_t - self.began_t + max(limit_s, factor * self.reported_every_s)

    def shown(self, lead_s: float) -> RankState:
        """The rank's state on rank 0's clock, of which this host is ahead by `lead_s`."""
        if self._shown is None or self._shown[0] != lead_s:
            self._shown = (lead_s, self._state(lead_s))
        return self._shown[1]

    def _state(self, lead_s: float) -> RankState:
        phase, process = self.phases.innermost, self.process
        return RankState(
            rank=self.rank,
            attempt=self.attempt,
            host=self.host,
            gpu=process.gpu,
            uuid=process.uuid,
            pci=process.pci,
            pid=process.pid,
            worker_server=process.worker_server,
            step=self.step,
            step_t=_less(self.step_t, lead_s),
            first_step_t=_less(self.first_step_t, lead_s),
            heard_t=_less(self.heard_t, lead_s),
            phase=phase,
            phase_since_t=_less(self.phases.open.get(phase or ""), lead_s),
            ended=process.ended,
            gone_t=process.gone_t,
            exception=process.exception,
            raised_t=_less(process.raised_t, lead_s),
            signal=process.signal,
            signal_t=_less(process.signal_t, lead_s),
            values=self.values,
            nonfinite_total=self.losses.total,
            nonfinite_since_t=_less(self.losses.since_t, lead_s),
            nonfinite_since_step=self.losses.since_step,
            nonfinite_step=self.losses.step,
            nonfinite_t=_less(self.losses.t, lead_s),
            speaks_for_all=self.speaks_for_all,
            data_wait_fraction=self.trends.waits.fraction(),
            fragmented=self.trends.fragmentation.grown(),
        )


def _less(t: float | None, lead_s: float) -> float | None:
    return None if t is None else t - lead_s
