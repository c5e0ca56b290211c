"""What do the ranks' facts add up to, one rank with the others?

Each rank has its own accumulator; what only several of them tell – attempts, the way that the run has gone,
the clocks of hosts, saves, the course of figures – is added up beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

from train_ledger.config import Alerts
from train_ledger.facts import Event, Fact, Fault, PlainStep, Step
from train_ledger.fields import read_world_size
from train_ledger.ledger.attempts import AttemptFold
from train_ledger.ledger.course import Course
from train_ledger.ledger.hardware.standing import Standing
from train_ledger.ledger.host_clocks import HostClocks
from train_ledger.ledger.rank import RankFold
from train_ledger.ledger.saves import SAVE_EVENTS, Saves
from train_ledger.ledger.trends.run_trends import RunTrends

__all__ = ["Ranks"]


class Ranks:
    """The accumulators of all ranks, by their numbers, and of what they tell together.

    `by_logs`: something of them is known by a trainer's log.
    """

    def __init__(self, effective_window_s: float) -> None:
        self.folds: dict[int, RankFold] = {}
        self.attempts: dict[int, AttemptFold] = {}
        self.by_logs = False
        self.saves = Saves()
        self.clocks = HostClocks()
        self.course = Course(effective_window_s)
        self.standing = Standing()
        self.trends = RunTrends()

    def of(self, number: int, alerts: Alerts) -> RankFold:
        """The accumulator of a rank, made when it is first spoken of."""
        rank = self.folds.get(number)
        if rank is None:
            rank = self.folds[number] = RankFold(number, alerts)
        return rank

    def attempt(self, number: int) -> AttemptFold:
        """The accumulator of an attempt, made when it is first spoken of."""
        attempt = self.attempts.get(number)
        if attempt is None:
            attempt = self.attempts[number] = AttemptFold(number)
        return attempt

    def add(self, rank: RankFold, fact: Fact, alerts: Alerts) -> None:
        """Fold one fact of a rank, of an attempt that has begun."""
        attempt_before, began_t, host = rank.attempt, rank.began_t, rank.host
        if isinstance(fact, Step):
            self._add_step(rank, fact, alerts)
        elif isinstance(fact, Event):
            self._add_event(rank, fact)
        elif isinstance(fact, Fault):
            rank.add_fault(fact)
        if rank.attempt == attempt_before:
            return
        if began_t is not None and host is not None:
            self.standing.left(host, began_t - rank.clock.shift_s)
        if rank.began_t is not None:
            self.attempt(rank.attempt).heard(rank.rank, rank.began_t)

    def _add_step(self, rank: RankFold, fact: Step, alerts: Alerts) -> None:
        if fact.attempt < rank.attempt:
            self.attempt(fact.attempt).reached(rank.rank, fact.step)
            return
        before = self.course.before(rank) if self.course.follows(rank.rank, fact.attempt) else None
        lap = rank.add_step(fact)
        if lap is None or rank.step_t is None:
            return
        if before is not None:
            self.course.completed(rank, fact, lap, before)
        self.attempt(rank.attempt).completed(rank.rank, fact.step, rank.step_t)
        self.clocks.completed(rank.rank, lap, (fact.step,), (rank.step_t,))
        self.trends.add(rank.rank, fact, rank.step_t, rank.timing, alerts)

    def _add_event(self, rank: RankFold, fact: Event) -> None:
        rank.add_event(fact)
        if fact.name == "run_start":
            attempt = self.attempt(fact.attempt)
            attempt.world_size = attempt.world_size or read_world_size(fact.details.get("world_size"))
        elif fact.name == "log_start":
            self.by_logs = True
        elif fact.name == "run_end":
            self.course.ended(rank.rank, fact.attempt)
        elif fact.name in SAVE_EVENTS:
            self.saves.add(fact, rank.rank, fact.t + rank.clock.shift_s, rank.step)

    def go_on(self, steps: Sequence[PlainStep], last: Step, alerts: Alerts) -> bool:
        """Whether the steps before `last`, of its rank, could be folded at once, and so were."""
        rank = self.folds.get(last.rank) if last.rank is not None else None
        if not steps or rank is None or rank.attempt != last.attempt:
            return False
        times = rank.carried(steps)
        if times is None or rank.step is None or rank.step_t is None:
            return False
        leads = self.course.follows(rank.rank, rank.attempt)
        if leads and not self.course.are_even(rank, times):
            return False
        before = (rank.step, rank.step_t)
        self.trends.add_all(rank.attempt, rank.rank, steps, times, before, alerts)
        lap = rank.go_on(steps, times, last)
        numbers = [step.step for step in steps]
        self.clocks.completed(rank.rank, lap, numbers, times)
        if leads:
            self.course.went_on(lap, steps, numbers, times, before[1])
        return True

    def leads_s(self) -> dict[int, float]:
        """Seconds that each rank's host is ahead of rank 0's, by the newest steps that both completed."""
        return self.clocks.leads_s({number: rank.host for number, rank in self.folds.items()})
