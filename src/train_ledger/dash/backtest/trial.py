"""What would the rules have said of these runs, and was it right?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from train_ledger.config import Config
from train_ledger.dash.backtest.happened import Happened
from train_ledger.dash.backtest.history import PastAlert
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.outcome import Outcome, outcome_of, totals
from train_ledger.dash.backtest.prometheus import alerts_by_prometheus
from train_ledger.dash.backtest.recording import Recording, record
from train_ledger.dash.backtest.replay import Replay
from train_ledger.dash.backtest.signs import signs_in
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["Backtest", "Engine", "Span", "backtest"]

Engine = Literal["embedded", "prometheus"]


_NOTHING = "no line of it has a time, so nothing could be judged"
_NOT_THEN = "nothing of it lies between --since and --until, so nothing was judged"


_MOST_EVALUATIONS = 2_000_000
"""116 days at every 5 s."""


class SpanError(RunDirError):
    """A run that lasted longer than can be judged; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Span:
    """From when on and until when a run is judged (unix seconds; None: as far as it goes)."""

    since_t: float | None = None
    until_t: float | None = None


@dataclass(frozen=True, slots=True)
class Backtest:
    """One run, judged again from `since_t` to `until_t`.

    Both are None where nothing of it has a time, so that nothing could be judged. `told` says that its
    incidents were told by a file, not read off the run itself. `before` is the same with the thresholds of
    its configuration, where others were tried.
    """

    run: str
    path: str
    since_t: float | None
    until_t: float | None
    alerts: tuple[PastAlert, ...]
    outcome: Outcome
    told: bool
    not_observed: tuple[str, ...]
    before: Backtest | None = None

    @property
    def hours(self) -> float:
        if self.since_t is None or self.until_t is None:
            return 0.0
        return max(0.0, self.until_t - self.since_t) / 3600

    @property
    def is_right(self) -> bool:
        """Whether every incident was found and no page was for nothing."""
        return not self.outcome.missed and not self.outcome.false_pages

    def to_json(self) -> dict[str, Any]:
        """In the shape of DESIGN: the alerts, and what they are worth."""
        judged = {
            "alerts": [alert.to_json() for alert in self.alerts],
            "incidents": [found.to_json() for found in self.outcome.found],
            "incidents_from": "file" if self.told else "run",
            "missed": [{"t": it.incident.t, "kind": it.incident.kind} for it in self.outcome.missed],
            "false_pages": [
                {"name": it.name, "labels": dict(it.labels), "notified_t": it.notified_t}
                for it in self.outcome.false_pages
            ],
            "totals": totals([self.outcome], self.hours),
        }
        before = {} if self.before is None else {"before": self.before.to_json()}
        return {
            "run": self.run,
            "path": self.path,
            "since_t": self.since_t,
            "until_t": self.until_t,
            **judged,
            "not_observed": list(self.not_observed),
            **before,
        }


def backtest(
    run_dir: RunDir,
    config: Config,
    tried: Config | None = None,
    *,
    engine: Engine = "embedded",
    span: Span | None = None,
    incidents: Mapping[str, Sequence[PastIncident]] | None = None,
) -> Backtest:
    """Judge a recorded run again by its configuration, and where there is one by the one to be `tried`.

    `incidents` are those that somebody wrote down, by the names of their runs; None: they are read off each
    run. Raises RunDirError where run.json cannot be used, SpanError, and PromtoolError.
    """
    recording = record(run_dir)
    if not recording.known:
        return _not_judged(run_dir, recording, _NOTHING)
    happened = Happened(config.alerts)
    replay = Replay(recording.run, config, recording.run_json, witness=happened.see)
    within = _played(replay, recording, span or Span())
    if within[0] > within[1]:
        return _not_judged(run_dir, recording, _NOT_THEN)
    told = None if incidents is None else _told_of(recording.run, run_dir, incidents, within)
    seen = [*happened.incidents(), *signs_in(recording, config, *within)] if told is None else told
    held = sorted(seen, key=lambda it: it.t)

    def judged(settings: Config) -> Backtest:
        if engine == "prometheus":
            alerts = alerts_by_prometheus(recording, settings, within[1], since_t=within[0])
        else:
            alerts = replay.alerts if settings is config else _replayed(recording, settings, within)
        outcome = outcome_of(held, alerts, settings.alerts)
        return Backtest(
            recording.run,
            str(run_dir.path),
            *within,
            alerts,
            outcome,
            told is not None,
            recording.not_observed,
        )

    if tried is None:
        return judged(config)
    return replace(judged(tried), before=judged(config))


def _not_judged(run_dir: RunDir, recording: Recording, why: str) -> Backtest:
    said = (*recording.not_observed, why)
    return Backtest(recording.run, str(run_dir.path), None, None, (), Outcome((), (), ()), False, said)


def _played(replay: Replay, recording: Recording, span: Span) -> tuple[float, float]:
    """Since and until when the run was judged."""
    since_t = recording.began_t if span.since_t is None else max(span.since_t, recording.began_t)
    until_t = recording.ended_t if span.until_t is None else span.until_t
    if until_t - since_t > _MOST_EVALUATIONS * replay.config.alerts.evaluation_interval_s:
        raise SpanError(
            f"{recording.run}: from {_moment(since_t)} to {_moment(until_t)} is too long to be judged at "
            "every interval; say with --since and --until what is wanted"
        )
    if span.until_t is None:
        return since_t, replay.play_to_end(recording.known, since_t=since_t)
    for _ in replay.play(recording.known, span.until_t, since_t=since_t):
        pass
    return since_t, span.until_t


def _moment(t: float) -> str:
    return f"{datetime.fromtimestamp(max(0.0, t), UTC):%Y-%m-%dT%H:%M:%SZ}"


def _replayed(recording: Recording, config: Config, within: tuple[float, float]) -> tuple[PastAlert, ...]:
    replay = Replay(recording.run, config, recording.run_json)
    for _ in replay.play(recording.known, within[1], since_t=within[0]):
        pass
    return replay.alerts


def _told_of(
    run: str,
    run_dir: RunDir,
    incidents: Mapping[str, Sequence[PastIncident]],
    within: tuple[float, float],
) -> list[PastIncident]:
    names: Iterable[str] = dict.fromkeys((run, run_dir.path.resolve().name))
    told = [it for name in names for it in incidents.get(name, ())]
    return sorted((it for it in told if within[0] <= it.t <= within[1]), key=lambda it: it.t)
