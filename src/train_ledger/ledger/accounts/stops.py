"""Where did the run stop, and with what did it go on?

Each lap of steps that another one follows is a stop, and so is the last one where its processes are gone; a
run that came to its end did not stop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from train_ledger.ledger.accounts.known import Known
from train_ledger.ledger.accounts.laps import RunLap
from train_ledger.ledger.accounts.recovering import Stop

__all__ = ["stops_of"]

_NEAR_US = 1_000_000


def stops_of(known: Known) -> list[Stop]:
    """The stops of a run in order."""
    found: list[Stop] = []
    reached = 0
    for place, lap in enumerate(known.laps):
        reached = max(reached, lap.last_step)
        stop = _stop(known, place, reached)
        if stop is not None:
            found.append(stop)
    return found


def _stop(known: Known, place: int, reached: int) -> Stop | None:
    lap = known.laps[place]
    after = known.laps[place + 1] if place + 1 < len(known.laps) else None
    number = known.place_of[lap.attempt]
    tail = known.tail(number)
    is_within = after is not None and after.attempt == lap.attempt
    if not is_within:
        is_last = number + 1 == len(known.attempts)
        if tail.ended_us is not None or (is_last and tail.gone is None):
            return None
    stopped_us = lap.times_us[-1]
    end_us = known.until_us if after is None else after.times_us[0]
    return Stop(
        before=lap,
        after=after,
        began_us=_began_us(known, number, lap, after),
        signs=known.signs_between(stopped_us - max(tail.usual_us, _NEAR_US), end_us),
        told=known.told_between(stopped_us, end_us),
        reached=reached,
        passed_us=_passed_us(known.laps[place + 1 :], reached),
    )


def _began_us(known: Known, number: int, lap: RunLap, after: RunLap | None) -> int | None:
    """When the attempt that took up the steps again began; where none has yet, the one that tries to."""
    if after is not None and after.attempt == lap.attempt:
        return lap.times_us[-1]
    if after is not None:
        return known.attempts[known.place_of[after.attempt]].began_us
    return known.attempts[-1].began_us if number + 1 < len(known.attempts) else None


def _passed_us(later: Sequence[RunLap], reached: int) -> int | None:
    """When the step once reached was done once more, or, where it was not told, passed."""
    for lap in later:
        if lap.last_step >= reached:
            place = bisect_right(lap.steps, reached - 1)
            return max(lap.times_us[place], lap.times_us[0])
    return None
