"""Which data did the run stand at, step by step, and did it go on from there after a restart?

The position is what the lines of one rank say of it: samples consumed, else tokens. Steps of equal stride
over which it grows by the same amount are one segment, however many they are, so that nothing is lost of a
run whose batch is constant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import gcd, lcm
from operator import attrgetter

from train_ledger.facts import PlainStep

__all__ = ["POSITION_FIELDS", "Positions", "Regress", "regress"]

POSITION_FIELDS = ("consumed_samples", "consumed_tokens")

_SEGMENTS = 1024
_LARGEST = float(1 << 53)
"""Up to here a number of a line is a whole one exactly."""

Regress = tuple[int, float, int, int]
"""(step, when it was completed, the position there, what it was at that step in an earlier attempt)"""


class Segment:
    """`count` steps from `step` on, each `stride` after the last, the position by `advance` further."""

    __slots__ = ("advance", "count", "position", "step", "stride", "t", "until_t")

    def __init__(self, step: int, position: int, t: float) -> None:
        self.step, self.position, self.t, self.until_t = step, position, t, t
        self.stride, self.advance, self.count = 1, 0, 1

    @property
    def last_step(self) -> int:
        return self.step + self.stride * (self.count - 1)

    @property
    def last_position(self) -> int:
        return self.position + self.advance * (self.count - 1)

    @property
    def is_line(self) -> bool:
        return self.count > 1

    def follows(self, step: int, position: int) -> bool:
        """Whether this is where the segment goes on."""
        return step == self.last_step + self.stride and position == self.last_position + self.advance

    def at(self, step: int) -> int:
        """The position at one of its steps, or as it would be at another one."""
        return self.position + self.advance * (step - self.step) // self.stride

    def time_at(self, step: int) -> float:
        """When about a step was completed."""
        share = (step - self.step) / max(1, self.last_step - self.step)
        return self.t + share * (self.until_t - self.t)


class Positions:
    """The positions of one rank in one lap of an attempt; of thousands of segments the newest."""

    __slots__ = ("_field", "segments", "told")

    def __init__(self) -> None:
        self._field: str | None = None
        self.segments: deque[Segment] = deque(maxlen=_SEGMENTS)
        self.told = 0

    @property
    def field(self) -> str | None:
        """By which field the lap tells its position; None before it does."""
        return self._field

    def add(self, step: int, t: float, values: Mapping[str, float]) -> None:
        """What the line of a completed step says; a lap tells its position by one field alone."""
        if self._field is None:
            self._field = next((name for name in POSITION_FIELDS if name in values), None)
        if self._field is not None:
            self._add(step, t, values.get(self._field))

    def _add(self, step: int, t: float, value: float | None) -> None:
        if value is None or not 0 <= value < _LARGEST or value != int(value):
            return
        position = int(value)
        self.told += 1
        last = self.segments[-1] if self.segments else None
        if last is not None and not last.is_line:
            last.stride, last.advance = step - last.step, position - last.position
        if last is not None and last.follows(step, position):
            last.count += 1
            last.until_t = t
        else:
            self.segments.append(Segment(step, position, t))

    def add_all(self, steps: Sequence[PlainStep], numbers: Sequence[int], times: Sequence[float]) -> None:
        """As `add` for the lines of steps in a row, whose `numbers` rise."""
        if self._field is None:
            self._field = next(
                (name for step in steps for name in POSITION_FIELDS if getattr(step, name) is not None), None
            )
        if self._field is None:
            return
        values: list[float | None] = [*map(attrgetter(self._field), steps)]
        if not self._goes_on(numbers, values, times[-1]):
            for number, value, t in zip(numbers, values, times, strict=True):
                self._add(number, t, value)

    def _goes_on(self, numbers: Sequence[int], values: list[float | None], t: float) -> bool:
        """Whether all of them lie on the last segment, which then ends with them."""
        last = self.segments[-1] if self.segments else None
        if last is None or not last.is_line or last.advance <= 0:
            return False
        count, stride, advance = len(numbers), last.stride, last.advance
        first_step, first = last.last_step + stride, last.last_position + advance
        if first + advance * count >= _LARGEST or numbers[-1] != first_step + stride * (count - 1):
            return False
        if numbers != [*range(first_step, first_step + stride * count, stride)]:
            return False
        if values != [*range(first, first + advance * count, advance)]:
            return False
        last.count += count
        last.until_t = t
        self.told += count
        return True

    @property
    def last_step(self) -> int:
        return self.segments[-1].last_step

    def covers(self, first: Segment) -> bool:
        """Whether a lap that begins so goes on from here, or does over what was done here."""
        return bool(self.segments) and self.segments[0].step <= first.step <= self.last_step + first.stride

    def before(self, step: int) -> Segment:
        """The segment in which a step lies, or the nearest one before it."""
        found = self.segments[0]
        for segment in self.segments:
            if segment.step > step:
                break
            found = segment
        return found


def regress(new: Positions, old: Positions) -> Regress | None:
    """Where `new`, which begins at steps that `old` covers, departs from it; None where it does not.

    Where the batch is another one than it was (a job of another size), only where it begins is compared: it
    must go on from where the data stood then, to within a batch.
    """
    begin = new.segments[0]
    if not begin.is_line:
        return None  # how large its batch is takes two lines
    told = _first_difference(new, old)
    there = old.before(begin.step)
    if told is not None and begin.advance * there.stride == there.advance * begin.stride:
        return told
    if told is None and begin.step <= old.last_step:
        return None
    was = old.before(begin.step - begin.stride).at(begin.step - begin.stride)
    batch = max(begin.advance, there.advance * begin.stride // there.stride)
    if abs(begin.position - begin.advance - was) <= batch:
        return None
    return (begin.step, begin.t, begin.position, there.at(begin.step))


def _first_difference(new: Positions, old: Positions) -> Regress | None:
    """The first step that both tell with different positions."""
    olds = list(old.segments)
    place = 0
    for segment in new.segments:
        while place < len(olds) and olds[place].last_step < segment.step:
            place += 1
        for other in olds[place:]:
            if other.step > segment.last_step:
                break
            for step in _shared_steps(segment, other):
                if segment.at(step) != other.at(step):
                    return (step, segment.time_at(step), segment.at(step), other.at(step))
    return None


def _shared_steps(a: Segment, b: Segment) -> list[int]:
    """The first two steps that both tell: two lines that agree in two places are the same."""
    low, high = max(a.step, b.step), min(a.last_step, b.last_step)
    if (a.step - b.step) % gcd(a.stride, b.stride):
        return []
    period = lcm(a.stride, b.stride)
    start = a.step + -(-(low - a.step) // a.stride) * a.stride
    while (start - b.step) % b.stride:
        start += a.stride
    return [step for step in (start, start + period) if step <= high]
