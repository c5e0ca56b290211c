"""From when to when did something hold, and was it clear or at the edge?

What is close to a threshold may be judged either way by two measures of the same thing. So each look says
whether something clearly held, held at the edge, or did not; only a stretch in which it was clear for long
enough counts as missed where nobody was told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

__all__ = ["Grade", "Stretch", "grade", "stretches"]


class Grade(IntEnum):
    """How a look was."""

    NO = 0
    EDGE = 1
    CLEAR = 2


class Stretch(NamedTuple):
    """Looks in a row at which something held, the first at `t` and the last at `until_t`.

    `clear_t` is from when on it clearly held for long enough, None where it never did.
    """

    t: float
    until_t: float
    clear_t: float | None

    @property
    def clear(self) -> bool:
        return self.clear_t is not None


def grade(value: float, clear: float, edge: float) -> Grade:
    """By two limits; the one at the edge is passed first, whether it lies below or above the other.

    >>> grade(1.6, clear=1.5, edge=1.4), grade(0.83, clear=0.8, edge=0.85), grade(1.0, clear=1.5, edge=1.4)
    (<Grade.CLEAR: 2>, <Grade.EDGE: 1>, <Grade.NO: 0>)
    """
    up = clear >= edge
    if value >= clear if up else value <= clear:
        return Grade.CLEAR
    return Grade.EDGE if (value >= edge if up else value <= edge) else Grade.NO


def stretches(looks: Iterable[tuple[float, Grade]], *, clear_s: float = 0.0) -> Iterator[Stretch]:
    """The stretches of looks that come by time; clear where it clearly held for `clear_s` on end."""
    held: list[tuple[float, Grade]] = []
    for t, how in looks:
        if how is not Grade.NO:
            held.append((t, how))
        elif held:
            yield _stretch(held, clear_s)
            held = []
    if held:
        yield _stretch(held, clear_s)


def _stretch(held: Sequence[tuple[float, Grade]], clear_s: float) -> Stretch:
    clear_t: float | None = None
    for t, how in held:
        clear_t = None if how is Grade.EDGE else t if clear_t is None else clear_t
        if clear_t is not None and t - clear_t >= clear_s:
            return Stretch(held[0][0], held[-1][0], clear_t)
    return Stretch(held[0][0], held[-1][0], None)
