"""Which steps did one rank write down, and when, on its own clock?

A tape is what is kept of a rank in one lap of an attempt: steps that rise. Of a few ranks all steps are
kept, as plain arrays, so that a run of a million steps fits; of the others the first and the last ones, which
say how far the rank came and how its clock stands to the others'.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

from train_ledger.facts import PlainStep, Step
from train_ledger.ledger.clock import Lap, RankClock
from train_ledger.ledger.pace import told_s
from train_ledger.ledger.positions import Positions

__all__ = ["RankTape", "Tape"]

_NAN = math.nan
_NEWEST = 8
"""So many steps are kept of a rank whose other ones are not."""


class Tape:
    """The steps of one rank in one lap, at carried times of its own clock.

    Arrays of one length: `steps`, `times`, `own_s` (the rank's own timer, nan where it tells none), `mfu` and
    `loss` (nan likewise). `saved_s` maps the place of a step to the seconds for which a save held it up, by
    the rank's own figure. `told` counts all steps.
    """

    __slots__ = ("is_whole", "lap", "loss", "mfu", "own_s", "positions", "saved_s", "steps", "times", "told")

    def __init__(self, lap: Lap, *, is_whole: bool) -> None:
        self.lap = lap
        self.is_whole = is_whole
        self.told = 0
        self.steps = array("q")
        self.times = array("d")
        self.own_s = array("d")
        self.mfu = array("f")
        self.loss = array("f")
        self.saved_s: dict[int, float] = {}
        self.positions = Positions()

    @property
    def last_step(self) -> int | None:
        return self.steps[-1] if self.steps else None

    @property
    def last_t(self) -> float:
        return self.times[-1]

    def add(self, step: int, t: float, values: Mapping[str, float]) -> None:
        """A step that is higher than the last, completed no earlier than that."""
        self.told += 1
        saved_s = values.get("ckpt_s", 0.0)
        if saved_s > 0:
            self.saved_s[len(self.steps)] = saved_s
        self.steps.append(step)
        self.times.append(t)
        own_s = told_s(values.get("step_time_s"))
        self.own_s.append(_NAN if own_s is None else own_s)
        self.mfu.append(_fitting(values.get("mfu")))
        self.loss.append(_fitting(values.get("loss")))
        if self.is_whole:
            self.positions.add(step, t, values)
        else:
            self._thin()

    def add_all(self, steps: Sequence[PlainStep], times: Sequence[float]) -> None:
        """As `add` for each of these steps, all of whose values are finite."""
        numbers = [it.step for it in steps]
        self.told += len(steps)
        if not self.is_whole:
            steps, numbers, times = steps[-_NEWEST:], numbers[-_NEWEST:], times[-_NEWEST:]
        place = len(self.steps)
        for index, it in enumerate(steps):
            if it.ckpt_s:
                self.saved_s[place + index] = it.ckpt_s
        self.steps.extend(numbers)
        self.times.extend(times)
        self.own_s.extend([_NAN if it.step_time_s is None else it.step_time_s for it in steps])
        self.mfu.extend([_fitting(it.mfu) for it in steps])
        self.loss.extend([_fitting(it.loss) for it in steps])
        if self.is_whole:
            self.positions.add_all(steps, numbers, times)
        else:
            self._thin()

    def _thin(self) -> None:
        excess = len(self.steps) - _NEWEST
        if excess > 0:
            for kept in (self.steps, self.times, self.own_s, self.mfu, self.loss):
                del kept[:excess]
            self.saved_s = {place - excess: it for place, it in self.saved_s.items() if place >= excess}


def _fitting(value: float | None) -> float:
    return _NAN if value is None or not abs(value) < 1e38 else value


class RankTape:
    """All laps of one rank; lines come in the order in which it wrote them.

    `paused` is whether it saved or evaluated since its last step, `heard` maps an attempt to its first and
    its last line there, `host_in` to where it ran.
    """

    def __init__(self, rank: int | None, *, is_whole: bool) -> None:
        self.rank = rank
        self.is_whole = is_whole
        self.clock = RankClock()
        self.host: str | None = None
        self.host_in: dict[int, str] = {}
        self.attempt = -1
        self.lap = 0
        self.paused = False
        self.heard: dict[int, tuple[float, float]] = {}
        self.tapes: dict[Lap, Tape] = {}

    @property
    def tape(self) -> Tape | None:
        return self.tapes.get((self.attempt, self.lap))

    def joins(self, attempt: int, host: str | None) -> bool:
        """Whether the fact is of the current attempt, which a higher one becomes."""
        if attempt < self.attempt:
            return False
        if attempt > self.attempt:
            self.clock.new_attempt(same_host=host is None or host == self.host)
            self.attempt, self.lap, self.paused, self.host = attempt, 0, False, None
        if host is not None:
            self.host = self.host_in[attempt] = host
        return True

    def hear(self, t: float) -> None:
        """It wrote a line at `t`, on its carried clock."""
        first, last = self.heard.get(self.attempt, (t, t))
        self.heard[self.attempt] = (first, max(t, last))

    def add_step(self, fact: Step) -> None:
        """A step of the current attempt; one that goes back begins a lap, one that is told again is left."""
        tape = self.tape
        last = tape.last_step if tape is not None else None
        last_t = tape.last_t if tape is not None and tape.steps else None
        t = self.clock.of_step(fact, last_t, paused=self.paused)
        self.hear(t)
        if last is not None and last_t is not None:
            if fact.step == last or (fact.step < last and t <= last_t):
                return
            if fact.step < last:
                self.lap += 1
                tape = None
            t = max(t, last_t)
        if tape is None:
            lap = (self.attempt, self.lap)
            tape = self.tapes[lap] = Tape(lap, is_whole=self.is_whole)
        tape.add(fact.step, t, fact.values)
        self.paused = False

    def go_on(self, steps: Sequence[PlainStep]) -> bool:
        """Whether these steps of the current attempt just go on from the last one, and so were added."""
        tape = self.tape
        if tape is None or self.paused or not tape.steps or steps[0].step <= tape.steps[-1]:
            return False
        times = self.clock.carried(steps, tape.steps[-1], tape.times[-1])
        if times is None:
            return False
        tape.add_all(steps, times)
        self.clock.went_on(steps[-1].step, times[-1])
        self.hear(times[-1])
        return True
