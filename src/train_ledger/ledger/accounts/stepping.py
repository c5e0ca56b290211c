"""Where did the time between two completed steps go?

By the same rules as `ledger.effective`: a step takes what it usually takes where something else held it up,
and all of its time, less what a save took, where nothing did. What something else took is that of the pauses
that are told; a step that took far longer than usual for no such reason stood.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from operator import sub
from statistics import median

from train_ledger.config import Alerts
from train_ledger.ledger.accounts.laps import RunLap, to_us
from train_ledger.ledger.accounts.pauses import Pauses
from train_ledger.ledger.accounts.pieces import Row

__all__ = ["OF_PHASE", "Limits", "paused_places", "write_lap"]

OF_PHASE: Mapping[str, str] = {
    "evaluation": "evaluation",
    "checkpoint_save": "checkpoint",
    "checkpoint_load": "start_up",
    "compile": "start_up",
    "start_up": "start_up",
}
"""The category of the time that a phase takes."""

_WARM_UP_STEPS = 2
_ROUNDED_US = 5_000_000
_ROUNDED = 0.02
"""By so much, or this share, a log's timer may differ from the times of its lines, which are rounded."""
_STRIDES = 5
"""A log that leaps over so many of its usual lines has lost some."""


class Limits:
    """How long what may last before it is a stall, as the alerts have it; in microseconds."""

    def __init__(self, alerts: Alerts) -> None:
        self.floor_us = to_us(alerts.stall_floor_s)
        self.factor = alerts.stall_factor
        self.start_up_us = to_us(alerts.start_up_limit_s)
        self._phases = {
            "evaluation": (to_us(alerts.evaluation_floor_s), alerts.evaluation_factor),
            "checkpoint_save": (to_us(alerts.checkpoint_floor_s), alerts.checkpoint_factor),
        }

    def step_us(self, usual_us: float) -> float:
        """From how long on a step stands that usually takes so long."""
        return max(self.floor_us, self.factor * usual_us)

    def step_s(self, usual_s: float) -> float:
        """The same in seconds."""
        return self.step_us(usual_s * 1e6) / 1e6

    def excess_us(self, phase: str, lasted_us: int, usual_us: float) -> int:
        """By how much a phase that outlasted its limit took longer than it usually does; else 0."""
        if phase not in self._phases:
            return 0
        floor_us, factor = self._phases[phase]
        over = lasted_us > max(floor_us, factor * usual_us)
        return round(lasted_us - usual_us) if over else 0


def paused_places(lap: RunLap, pauses: Mapping[str, Pauses]) -> set[int]:
    """The places of steps that were completed behind the begin or the end of a pause."""
    return {
        place
        for of_kind in pauses.values()
        for edge in of_kind.edges
        if 0 < (place := bisect_right(lap.times_us, edge)) < len(lap.times_us)
    }


def write_lap(row: Row, lap: RunLap, keep: int, pauses: Mapping[str, Pauses], limits: Limits) -> None:
    """Write the lap from where the row ends to its last step; steps beyond `keep` are done once more."""
    _Writer(row, lap, keep, pauses, limits).write()


class _Writer:
    def __init__(
        self, row: Row, lap: RunLap, keep: int, pauses: Mapping[str, Pauses], limits: Limits
    ) -> None:
        self.row, self.lap, self.keep, self.pauses, self.limits = row, lap, keep, pauses, limits
        self.paused = paused_places(lap, pauses)

    def write(self) -> None:
        lap = self.lap
        self._first()
        done = 0
        for place in self._odd():
            self._even(done, place - 1)
            self._odd_step(place)
            done = place
        self._even(done, len(lap.steps) - 1)

    def _odd(self) -> list[int]:
        """Places, but the first, that are to be looked at one by one."""
        times, floor_us = self.lap.times_us, self.limits.floor_us
        odd = set(range(1, min(_WARM_UP_STEPS, len(times)))) | self.paused | self.lap.saved_s.keys()
        odd |= {place for place, us in enumerate(map(sub, times[1:], times), 1) if us > floor_us}
        if self.lap.is_log:
            odd |= {place for place in range(1, len(times)) if self._apart_us(place) is not None}
        odd.add(bisect_right(self.lap.steps, self.keep))
        return sorted(place for place in odd if 0 < place < len(times))

    def _apart_us(self, place: int) -> int | None:
        """How long the steps up to this one took by a log's own timer; None where that is about all."""
        lap = self.lap
        own_s = lap.own_s[place] if lap.is_log else 0.0
        if not own_s > 0:  # nan, too
            return None
        passed_us = lap.times_us[place] - lap.times_us[place - 1]
        own_us = to_us(own_s * (lap.steps[place] - lap.steps[place - 1]))
        return own_us if passed_us - own_us > max(_ROUNDED_US, _ROUNDED * passed_us) else None

    def _even(self, done: int, place: int) -> None:
        """Steps behind `done` up to `place` that nothing held up."""
        if place > done:
            steps = (self.lap.steps[done] + 1, self.lap.steps[place])
            self._steps(steps, self.lap.times_us[place] - self.row.at_us)

    def _steps(self, steps: tuple[int, int], us: int) -> None:
        """Time that went into these steps: of use up to `keep`."""
        first, last = steps
        if us <= 0:
            return
        count, kept = last - first + 1, min(max(0, self.keep - first + 1), last - first + 1)
        kept_us = us if kept == count else us * kept // count
        start_us = self.row.at_us
        if kept:
            self.row.write("productive", start_us + kept_us, "", (first, first + kept - 1))
        if kept < count:
            self.row.write(
                "rework", start_us + us, "steps that were lost, and done once more", (first + kept, last)
            )

    def _first(self) -> None:
        lap = self.lap
        passed_us = lap.times_us[0] - self.row.at_us
        count = max(1, lap.steps[0] - lap.base)
        usual_s = lap.usual.at(0)
        step_us = 0 if usual_s is None else min(max(0, passed_us), to_us(usual_s * count))
        is_long = passed_us - step_us > self.limits.start_up_us
        is_told = not lap.is_log and lap.lap[1] == 0
        self.row.write(
            "unknown" if is_long and not is_told else "start_up",
            lap.times_us[0] - step_us,
            _LONG_BEFORE if is_long and not is_told else _START,
        )
        self._steps((lap.steps[0] - count + 1, lap.steps[0]), lap.times_us[0] - self.row.at_us)

    def _odd_step(self, place: int) -> None:
        lap = self.lap
        since_us, until_us = self.row.at_us, lap.times_us[place]
        passed_us, count = until_us - since_us, lap.steps[place] - lap.steps[place - 1]
        usual_s = lap.usual.at(place)
        usual_us = passed_us if usual_s is None else to_us(usual_s * count)
        saved_us = min(max(0, passed_us), to_us(min(lap.saved_s.get(place, 0.0), 1e6)))
        apart_us = self._apart_us(place)
        if apart_us is not None:
            stood = apart_us > self.limits.step_us(usual_us)
            self._held(place, until_us - (usual_us if stood else apart_us), usual_us, saved_us)
        elif place < _WARM_UP_STEPS or place in self.paused or passed_us > self.limits.step_us(usual_us):
            self._held(place, until_us - min(passed_us, usual_us), usual_us, saved_us)
        else:
            self.row.write("checkpoint", since_us + saved_us)
        self._steps((lap.steps[place - 1] + 1, lap.steps[place]), until_us - self.row.at_us)

    def _held(self, place: int, until_us: int, usual_us: int, saved_us: int) -> None:
        """What held a step up, which itself took what follows `until_us`."""
        over_us = until_us - self.row.at_us
        if over_us <= 0:
            return
        told, stalled_us = self._told(place, saved_us)
        left_us = over_us - min(over_us, sum(told.values()) + stalled_us)
        why = _STOOD
        is_short = left_us <= self.limits.step_us(usual_us)
        if left_us and is_short and any(told.values()):
            told[max(told, key=lambda phase: told[phase])] += left_us
        elif left_us and is_short and (touched := self._touched(place)):
            told[touched[0]] = left_us
        elif left_us and self._is_gap(place, is_short=is_short):
            why = ""
        elif left_us and place < _WARM_UP_STEPS:
            told["start_up"] = told.get("start_up", 0) + left_us
        for phase, us in told.items():
            self.row.write(OF_PHASE[phase], min(until_us, self.row.at_us + us))
        self.row.write("stalled" if why else "unknown", until_us, why or _APART)

    def _told(self, place: int, saved_us: int) -> tuple[dict[str, int], int]:
        """How long each phase lasted before this step, and how much of that was too long to be it."""
        since_us, until_us = self.row.at_us, self.lap.times_us[place]
        told = {phase: it.within_us(since_us, until_us) for phase, it in self.pauses.items()}
        if saved_us:
            told["checkpoint_save"] = max(told.get("checkpoint_save", 0), saved_us)
        stalled_us = 0
        for phase, us in told.items():
            excess_us = self.limits.excess_us(phase, us, _usual_us(self.pauses.get(phase), us))
            stalled_us += excess_us
            told[phase] = us - excess_us
        return told, stalled_us

    def _touched(self, place: int) -> list[str]:
        """The phases that began or ended before this step, however long they were."""
        since_us, until_us = self.row.at_us, self.lap.times_us[place]
        return [phase for phase, it in self.pauses.items() if it.touches(since_us, until_us)]

    def _is_gap(self, place: int, *, is_short: bool) -> bool:
        """Whether a log leaves it open what was there: beside its timer, or where lines of it are missing."""
        if self._apart_us(place) is None:
            return False
        count = self.lap.steps[place] - self.lap.steps[place - 1]
        return is_short or count > _STRIDES * (self.lap.stride or 1) or len(self.lap.steps) == _WARM_UP_STEPS


_START = "from the start to the first step, less what a step takes"
_LONG_BEFORE = "nothing tells what was for so long before the first step, nor since when it was starting"
_APART = "beside the steps by the log's own timer, and nothing tells what it was"
_STOOD = "no step was completed for far longer than one takes"


def _usual_us(pauses: Pauses | None, lasted_us: int) -> float:
    """The median of the run's pauses of this kind, but for this one."""
    durations = list(pauses.durations_us) if pauses is not None else []
    if lasted_us in durations:
        durations.remove(lasted_us)
    return median(durations) if durations else 0.0
