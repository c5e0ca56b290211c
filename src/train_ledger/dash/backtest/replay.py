"""What would the embedded judge have said of a run, evaluation by evaluation?

The keeper's own parts – fold, judge, incidents – are fed with what was known at each evaluation, in the run's
own time. Nothing here reads a clock or a file, so that a simulated run is replayed as a recorded one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from train_ledger.config import Alerts, Config
from train_ledger.dash.backtest.history import AlertHistory, PastAlert
from train_ledger.dash.judge import Judge, Transition
from train_ledger.dash.rule import Inhibition, Rule
from train_ledger.dash.rules import INHIBITIONS, RULES
from train_ledger.facts import Event, Fact, Fault, HardwareReading, Step
from train_ledger.headway import tell
from train_ledger.ledger import Fold, RunState

__all__ = ["Known", "Replay", "Statement", "evaluations", "quiet_s"]

_AFTER_S = 120.0

Statement = Fact | HardwareReading


class Known(NamedTuple):
    """What was said, and from when on it is known, on the run's clock.

    `lead_s` is by how much the clock of the host that said it is ahead; `of_host` says that it is no line of
    a rank but what its host's hardware or kernel tells.
    """

    t: float
    what: Statement
    lead_s: float = 0.0
    of_host: bool = False

    def fold_into(self, fold: Fold) -> None:
        if isinstance(self.what, Step | Event | Fault) and not self.of_host:
            fold.add(self.what)
        elif isinstance(self.what, HardwareReading | Fault):
            fold.add_hardware(self.what)


def evaluations(since_t: float, until_t: float, every_s: float) -> Iterator[float]:
    """The moments at which rules are evaluated: multiples of the interval, from `since_t` on."""
    number = math.ceil(since_t / every_s)
    while number * every_s <= until_t:
        yield number * every_s
        number += 1


def quiet_s(state: RunState, alerts: Alerts) -> float:
    """For how long nothing more has to be heard of a run until everybody has been told who will be.

    Of a run that has finished, until its last pages are resolved.
    """
    if state.finished:
        return alerts.keep_firing_s + _AFTER_S
    return max(state.stall_threshold_s, alerts.process_gone_s, alerts.telemetry_lost_s) + _AFTER_S


class Replay:
    """Statements in, transitions and alerts out; `rules` and `inhibitions` are the table's own unless said.

    `add` what is known and `evaluate` at moments that rise; or `play` a whole run. `witness` is shown every
    state that is judged.
    """

    def __init__(
        self,
        run: str,
        config: Config,
        run_json: Mapping[str, Any] | None = None,
        *,
        rules: tuple[Rule, ...] = RULES,
        inhibitions: tuple[Inhibition, ...] = INHIBITIONS,
        witness: Callable[[RunState], None] | None = None,
    ) -> None:
        self.config = config
        self.fold = Fold(run, config, run_json)
        self._judge = Judge(rules, config, inhibitions)
        waits_s = config.respond.page_waits_s if config.respond.on_page else 0.0
        self._history = AlertHistory(config.alerts, waits_s)
        self._witness = witness

    @property
    def alerts(self) -> tuple[PastAlert, ...]:
        """Every alert there was until now, in the order in which they fired."""
        return self._history.alerts

    def add(self, known: Known) -> None:
        """Something becomes known."""
        known.fold_into(self.fold)

    def evaluate(self, t: float) -> list[Transition]:
        """What fired and what was resolved at `t`, by what is known now."""
        state = self.fold.state(t)
        if self._witness is not None:
            self._witness(state)
        transitions = self._judge.evaluate(state)
        self._history.take(transitions, t)
        return transitions

    def play(
        self, known: Iterable[Known], until_t: float, *, since_t: float | None = None
    ) -> Iterator[Transition]:
        """All transitions of a run whose statements come in the order of their times.

        It is evaluated at every interval up to `until_t`, from the first statement on or from `since_t`; what
        was known before is folded, and nobody was there to judge it.
        """
        rest = iter(known)
        upcoming = next(rest, None)
        if since_t is None:
            since_t = until_t if upcoming is None else upcoming.t
        for t in evaluations(since_t, until_t, self.config.alerts.evaluation_interval_s):
            while upcoming is not None and upcoming.t <= t:
                self.add(upcoming)
                upcoming = next(rest, None)
            yield from self.evaluate(t)
            tell("judging again", t - since_t, until_t - since_t, "seconds")
        while upcoming is not None and upcoming.t <= until_t:
            self.add(upcoming)
            upcoming = next(rest, None)

    def play_to_end(self, known: Sequence[Known], *, since_t: float | None = None) -> float:
        """Play a whole run until nothing more can be paged (see `quiet_s`); returns until when."""
        ended_t = known[-1].t
        for _ in self.play(known, ended_t, since_t=since_t):
            pass
        until_t = ended_t + quiet_s(self.fold.state(ended_t), self.config.alerts)
        behind_t = math.nextafter(ended_t, math.inf)
        for _ in self.play((), until_t, since_t=max(behind_t, since_t or behind_t)):
            pass
        return until_t
