"""What did the judges make of a day?

The embedded judge follows a day as a keeper follows a run: facts are folded when they can be read, and the
state is judged every evaluation interval. Prometheus is asked through promtool, with the generated rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from train_ledger.chaos.days.day import Day, Told
from train_ledger.config import Config
from train_ledger.dash.backtest import Known, PastAlert, Replay
from train_ledger.facts import Fault, HardwareReading

__all__ = ["Judged", "Noticed", "judge_day", "known"]


@dataclass(frozen=True, slots=True)
class Noticed:
    """An alert that people would have known of at the true time `t`, or that was put on record then."""

    t: float
    alert: PastAlert


@dataclass(frozen=True, slots=True)
class Judged:
    """What was noticed in a day, in order; `facts` were folded, which took `cpu_s` of a core."""

    noticed: tuple[Noticed, ...]
    facts: int
    cpu_s: float

    def of_level(self, level: str) -> list[Noticed]:
        return [it for it in self.noticed if it.alert.level == level]


def known(day: Day, told: Told) -> Known:
    """The fact as a replay takes it."""
    fact, zero = told.fact, day.clock_of(None)
    of_host = isinstance(fact, HardwareReading) or (isinstance(fact, Fault) and fact.rank is None)
    lead_s = day.clock_of(fact.host).reads(told.at) - zero.reads(told.at)
    return Known(zero.reads(told.at), fact, lead_s, of_host)


def judge_day(day: Day, config: Config | None = None) -> Judged:
    """Follow a day to its end by the embedded judge; afterwards `day.truth` is complete."""
    follower = _Follower(day, config or Config())
    began_s = time.process_time()
    for told in day.told:
        follower.read(told)
    follower.judge_until(follower.last_at + 1.0)
    return Judged(tuple(follower.noticed()), follower.facts, time.process_time() - began_s)


class _Follower:
    """Reads one day, and judges in its own time."""

    def __init__(self, day: Day, config: Config) -> None:
        self._day = day
        self._every_s = config.alerts.evaluation_interval_s
        at_once = replace(config, respond=replace(config.respond, page_waits_s=0.0))
        self._replay = Replay(str(day.run_json["run"]), at_once, day.run_json)
        self._due_t = day.start_t + self._every_s
        self._true_t: dict[float, float] = {}
        self.last_at = day.start_t
        self.facts = 0

    def read(self, told: Told) -> None:
        self.judge_until(told.at)
        self.last_at = max(self.last_at, told.at)
        self.facts += 1
        self._replay.add(known(self._day, told))

    def judge_until(self, t: float) -> None:
        """Judge at every evaluation before `t`."""
        while self._due_t < t:
            run_t = self._replay.fold.carried(self._day.clock_of(None).reads(self._due_t))
            if self._replay.evaluate(run_t):
                self._true_t[run_t] = self._due_t
            self._due_t += self._every_s

    def noticed(self) -> Iterable[Noticed]:
        for alert in self._replay.alerts:
            known_t = alert.known_t if alert.inhibited else alert.fired_t
            if known_t is not None:
                yield Noticed(self._true_t.get(known_t, known_t), alert)
