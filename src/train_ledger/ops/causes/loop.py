"""A run is restarted again and again: what did its first death come from?

Each attempt of the loop died of something. The first of these deaths is the cause, and whether the later ones
died of the same says whether a restart can help at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from train_ledger.answer import Diagnosis
from train_ledger.ledger.attempts import reached_before
from train_ledger.ledger.state import Attempt
from train_ledger.ops.causes.earlier import gpus_told
from train_ledger.ops.causes.first import with_first
from train_ledger.ops.seen import Seen
from train_ledger.ops.troubles import FirstCause, Told, Trouble, first_cause, troubles_told
from train_ledger.ops.troubles.lines import first_lines, line_of
from train_ledger.ops.words import step_clock
from train_ledger.render import ranks_in_words

__all__ = ["Loop", "how_the_last_attempt_ended", "of_loop"]

_DEATH_S = 900.0
"""A watchdog gives up so late at most, where it was not set otherwise, and a launcher then takes its time."""

_SLACK_S = 90.0


@dataclass(frozen=True, slots=True)
class _Death:
    attempt: Attempt
    first: FirstCause | None


class Loop(NamedTuple):
    """The diagnosis, and how many seconds the loop has cost; None where its begin is not known."""

    diagnosis: Diagnosis
    lost_s: float | None = None


def of_loop(seen: Seen) -> Loop:
    """The diagnosis of a loop of restarts, with the first cause of its first death where it is told."""
    state = seen.state
    summaries = tuple(it.summary for it in seen.fires("TrainingRestartLoop"))
    found = Diagnosis(
        state=state.state,
        cause="restart_loop",
        confidence="high",
        since_step=state.step,
        evidence=(*summaries, step_clock(state)),
    )
    told = troubles_told(seen.run_dir, state, seen.config.xid, until_t=seen.at)
    deaths = _deaths(seen, told)
    found = replace(found, not_observed=told.not_read)
    first = next((it for it in deaths if it.first is not None), None)
    if first is None or first.first is None:
        why = "what ended the attempts: no log, kernel log or signal of them tells it"
        return Loop(replace(found, not_observed=(why, *found.not_observed)))
    lines = tuple(_of_others(deaths, first, first.first))
    found = replace(found, evidence=(_of_first(first), *lines, *found.evidence), since_t=first.first.t)
    return Loop(with_first(_decided(found, first.first), first.first), _lost_s(seen, first.first.t))


def how_the_last_attempt_ended(seen: Seen) -> tuple[str, ...]:
    """What the attempt before this one died of, in words; none where nothing tells it."""
    place = len(seen.state.attempts) - 2
    if place < 0:
        return ()
    told = troubles_told(seen.run_dir, seen.state, seen.config.xid, until_t=seen.at)
    death = _death_of(seen, told, place, slack_s=_SLACK_S)
    if death.first is None:
        return ()
    number = death.attempt.number
    return tuple(
        line.replace("first cause", f"attempt {number} ended", 1) for line in first_lines(death.first)
    )


def _deaths(seen: Seen, told: Told) -> list[_Death]:
    """The attempts of the loop, each with what it died of."""
    good = _begin(seen)
    places = range(good, len(seen.state.attempts))
    return [_death_of(seen, told, it, slack_s=_SLACK_S * (it == good)) for it in places]


def _death_of(seen: Seen, told: Told, place: int, *, slack_s: float) -> _Death:
    """`slack_s` is how long before what is looked at it may have been told, by clocks that differ."""
    attempts = seen.state.attempts
    is_last = place + 1 == len(attempts)
    began_t = attempts[place].started_t
    next_t = seen.state.t if is_last else attempts[place + 1].started_t
    since_t = max(began_t, next_t - _DEATH_S) if not is_last else began_t
    some = told.within(since_t - slack_s, None if is_last else next_t)
    some = tuple(it for it in some if it.t is None or it.t <= next_t or it.earliest_t != it.t)
    return _Death(attempts[place], first_cause(_of_attempt(some, attempts[place]), seen.world))


def _begin(seen: Seen) -> int:
    """The place of the attempt that died first: it came further than ever, or quick restarts follow it."""
    attempts = seen.state.attempts
    good = 0
    for place, attempt in enumerate(attempts[1:], start=1):
        before = reached_before(attempts, attempt.number)
        if attempt.last_step is not None and (before is None or attempt.last_step > before):
            good = place
    since_t = seen.state.t - seen.config.alerts.restart_loop_window_s
    quick = (place for place, it in enumerate(attempts) if place and it.started_t >= since_t)
    return min(good, next(quick, good + 1) - 1)


def _of_attempt(some: Iterable[Trouble], attempt: Attempt) -> tuple[Trouble, ...]:
    """Ranks say which attempt theirs is; of what nobody says, the time decides."""
    return tuple(it for it in some if it.attempt == attempt.number or not it.source.startswith("signals/"))


def _of_first(death: _Death) -> str:
    reached = death.attempt.last_step
    where = f" at step {reached}" if reached is not None else " before its first step"
    return f"the loop began when attempt {death.attempt.number} died{where}"


def _of_others(deaths: list[_Death], first: _Death, cause: FirstCause) -> list[str]:
    """Whether the later attempts died of the same; what else they died of is told once."""
    later = [it for it in deaths if it is not first and it.first is not None]
    same = [it for it in later if it.first and it.first.first[0].shape == cause.first[0].shape]
    lines = []
    if same:
        who = ranks_in_words((it.attempt.number for it in same), "attempt")
        lines.append(f"{who} died of the same: a restart does not help")
    seen = {cause.first[0].shape}
    for it in later:
        trouble = it.first.first[0] if it.first else None
        if trouble is not None and trouble.shape not in seen and len(seen) < 3:
            seen.add(trouble.shape)
            lines.append(f"attempt {it.attempt.number} died of something else: {line_of(trouble)}")
    return lines


def _lost_s(seen: Seen, since_t: float | None) -> float | None:
    """Since the first death nothing new was done; where no process is left, until the last one was heard."""
    state = seen.state
    heard_t = max((it.heard_t or 0.0 for it in state.ranks.values()), default=state.t)
    is_down = state.state == "stopped" and state.since_t is not None and state.since_t >= heard_t
    return None if since_t is None else max(0.0, (heard_t if is_down else state.t) - since_t)


def _decided(found: Diagnosis, first: FirstCause) -> Diagnosis:
    """Hardware and saves have names of their own; what a rank raised makes the loop its own."""
    if first.kind == "xid":
        gpus = gpus_told(first)
        hosts = () if first.ranks else first.hosts
        return replace(
            found, cause="hardware.xid", ranks=first.ranks, hosts=hosts, gpus=gpus, confidence="medium"
        )
    if first.kind == "checkpoint_failed":
        return replace(found, cause="checkpoint_failing", confidence="medium")
    if first.is_sign or first.of_all:
        return found
    hosts = () if first.ranks else first.hosts
    return replace(found, ranks=first.ranks, hosts=hosts)
