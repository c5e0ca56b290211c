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
        return max(self.floor_us, self.factor * usual_us)

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
        odd.add(bisect_right(self.lap.steps, self.keep))
        return sorted(place for place in odd if 0 < place < len(times))

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
        self.row.write("start_up", lap.times_us[0] - step_us, _START)
        self._steps((lap.steps[0] - count + 1, lap.steps[0]), lap.times_us[0] - self.row.at_us)

    def _odd_step(self, place: int) -> None:
        lap = self.lap
        since_us, until_us = self.row.at_us, lap.times_us[place]
        passed_us, count = until_us - since_us, lap.steps[place] - lap.steps[place - 1]
        usual_s = lap.usual.at(place)
        usual_us = passed_us if usual_s is None else to_us(usual_s * count)
        saved_us = min(max(0, passed_us), to_us(min(lap.saved_s.get(place, 0.0), 1e6)))
        is_held = place < _WARM_UP_STEPS or place in self.paused or passed_us > self.limits.step_us(usual_us)
        if is_held:
            step_us = min(passed_us, usual_us)
            self._held(since_us, until_us - step_us, place, usual_us, saved_us)
        else:
            self.row.write("checkpoint", since_us + saved_us)
        self._steps((lap.steps[place - 1] + 1, lap.steps[place]), until_us - self.row.at_us)

    def _held(self, since_us: int, until_us: int, place: int, usual_us: int, saved_us: int) -> None:
        """What held a step up, which itself took what follows `until_us`."""
        over_us = until_us - since_us
        if over_us <= 0:
            return
        end_us = self.lap.times_us[place]
        told = {phase: it.within_us(since_us, end_us) for phase, it in self.pauses.items()}
        told["checkpoint_save"] = max(told.get("checkpoint_save", 0), saved_us)
        touched = [phase for phase, it in self.pauses.items() if it.touches(since_us, end_us)]
        stalled_us = 0
        for phase, us in told.items():
            usual = _usual_us(self.pauses.get(phase), us)
            excess_us = min(us, self.limits.excess_us(phase, us, usual))
            stalled_us += excess_us
            told[phase] = us - excess_us
        left_us = over_us - min(over_us, sum(told.values()) + stalled_us)
        if left_us and place < _WARM_UP_STEPS:
            told["start_up"] = told.get("start_up", 0) + left_us
        elif left_us and (touched or saved_us) and left_us <= self.limits.step_us(usual_us):
            longest = max(touched or ["checkpoint_save"], key=lambda phase: told[phase])
            told[longest] += left_us
        for phase, us in told.items():
            self.row.write(OF_PHASE[phase], min(until_us, self.row.at_us + us), "")
        self.row.write("stalled", until_us, _STOOD)


_START = "from the start to the first step, less what a step takes"
_STOOD = "no step was completed for far longer than one takes"


def _usual_us(pauses: Pauses | None, lasted_us: int) -> float:
    """The median of the run's pauses of this kind, but for this one."""
    durations = list(pauses.durations_us) if pauses is not None else []
    if lasted_us in durations:
        durations.remove(lasted_us)
    return median(durations) if durations else 0.0
