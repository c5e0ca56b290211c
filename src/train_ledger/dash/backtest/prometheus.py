"""What would Prometheus have said of a run, with the very rules that it is given?

What every target would have answered to every scrape becomes the input of promtool, which evaluates the
generated rules file. Which alerts fire is then Prometheus' own word; who is told of them, and what inhibits
what, is worked out from there as the keeper does it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from train_ledger.config import Alerts, Config
from train_ledger.dash.backtest.history import AlertHistory, PastAlert
from train_ledger.dash.backtest.promtool import Fired, Firings, evaluate
from train_ledger.dash.backtest.recording import Recording
from train_ledger.dash.backtest.replay import evaluations
from train_ledger.dash.backtest.samples import Samples
from train_ledger.dash.backtest.targets import Targets
from train_ledger.dash.judge import Judge
from train_ledger.dash.promql import alerts_yml, expression
from train_ledger.dash.rule import Firing, Rule
from train_ledger.dash.rules import INHIBITIONS, RECORDINGS, RULES
from train_ledger.ledger import Fold, RunState

__all__ = ["MetricsRead", "alerts_by_prometheus"]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_NAMED_LIKE = re.compile(r'__name__=~"([^"\\]*)"')


class MetricsRead:
    """Whether the rules, or what they rest on, read a metric; `in` asks."""

    def __init__(self, rules: tuple[Rule, ...], alerts: Alerts) -> None:
        asked = [recording.promql for recording in RECORDINGS]
        asked += [text for rule in rules for text in (rule.promql, rule.summary)]
        texts = [expression(text, alerts) for text in asked]
        self._names = {name for text in texts for name in _NAME.findall(text)}
        self._patterns = [re.compile(found) for text in texts for found in _NAMED_LIKE.findall(text)]

    def __contains__(self, name: object) -> bool:
        return name in self._names or any(it.fullmatch(str(name)) for it in self._patterns)


def alerts_by_prometheus(
    recording: Recording,
    config: Config,
    until_t: float,
    *,
    since_t: float | None = None,
    rules: tuple[Rule, ...] = RULES,
) -> tuple[PastAlert, ...]:
    """The alerts of a run up to `until_t`, from its start or from `since_t` on, in the order of their firing.

    Raises PromtoolError where promtool is missing or refuses the rules.
    """
    every_s = config.alerts.evaluation_interval_s
    begin_t = recording.began_t if since_t is None else since_t
    moments = list(evaluations(begin_t, until_t, every_s))
    if not moments:
        return ()
    origin_t = _origin_t(recording, moments[0], every_s)
    samples = _samples(recording, config, moments, origin_t, rules)
    told = evaluate(
        alerts_yml(config.alerts, rules=rules, xids=config.xid),
        samples.lines(),
        [t - origin_t for t in moments],
        every_s=every_s,
        names=[rule.name for rule in rules],
    )
    return _notified(recording.run, told, config, moments, origin_t, rules)


def _origin_t(recording: Recording, first_t: float, every_s: float) -> float:
    """Where promtool's clock reads 0: before every time that the run tells, since 0 and less is no time."""
    behind_s = -min((it.lead_s for it in recording.known), default=0.0)
    earliest_t = min(first_t, recording.began_t - max(0.0, behind_s))
    return first_t - every_s * (2 + int((first_t - earliest_t) // every_s))


def _samples(
    recording: Recording, config: Config, moments: Sequence[float], origin_t: float, rules: tuple[Rule, ...]
) -> Samples:
    hosts = {it.what.host for it in recording.known if it.what.host is not None}
    targets = Targets(
        recording.run,
        config,
        recording.run_json,
        hosts=hosts,
        wanted=MetricsRead(rules, config.alerts),
        origin_t=origin_t,
    )
    whole = Fold(recording.run, config, recording.run_json)
    samples = Samples()
    place = 0
    for t in moments:
        while place < len(recording.known) and recording.known[place].t <= t:
            known = recording.known[place]
            targets.add(known)
            known.fold_into(whole)
            place += 1
        scrape = round((t - origin_t) / config.alerts.evaluation_interval_s)
        for instance, found in targets.scrape(whole.state(t)):
            samples.scraped(scrape, instance, found)
    return samples


def _notified(
    run: str,
    told: Firings,
    config: Config,
    moments: Sequence[float],
    origin_t: float,
    rules: tuple[Rule, ...],
) -> tuple[PastAlert, ...]:
    """Inhibition and incidents by the keeper's own parts, on what Prometheus found."""
    judge = Judge(tuple(_as_found(rule, told, origin_t) for rule in rules), config, INHIBITIONS)
    history = AlertHistory(config.alerts, config.alerts.group_wait_s)
    for t in moments:
        history.take(judge.evaluate(RunState(run, t)), t)
    return history.alerts


def _as_found(rule: Rule, told: Firings, origin_t: float) -> Rule:
    """The rule with Prometheus' word in the place of its condition."""
    marks = {("level", rule.level)}

    def check(state: RunState, _: Alerts) -> list[Firing]:
        at_s = _nearest(told, state.t - origin_t)
        return [
            Firing(dict(set(labels) - marks), 1.0, _summary(told, (name, labels), at_s))
            for name, labels in sorted(told.at.get(at_s, ()))
            if name == rule.name
        ]

    return replace(rule, check=check, for_s=0.0, keep_firing_for_s=0.0)


def _nearest(told: Firings, at_s: float) -> float:
    return round(at_s, 3)


def _summary(told: Firings, fired: Fired, at_s: float) -> str:
    """As it read at the first look after it fired; "" where it was over by then."""
    looks: Iterable[tuple[float, str]] = told.summaries.get(fired, ())
    places = [look_s for look_s, _ in looks]
    place = bisect_left(places, at_s)
    return list(looks)[place][1] if place < len(places) else ""
