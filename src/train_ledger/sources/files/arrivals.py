"""For how long do lines of a log lie in the buffer of whoever writes it?

A program, or the launcher that reads its output, may write a block at a time: then many steps come at once,
and none for long. How long is seen from one writing to the next; before there were two, by how much of the
log a step takes, where the file ends within a line, as buffers leave it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from train_ledger.facts import Step

__all__ = ["Arrivals"]

_BUFFER_BYTES = 8192
"""What Python keeps of a file; C keeps 4096 bytes of one."""
_BUNCH = 3
_WINDOW = 8
_NEWS = 1.25


class Arrivals:
    """The writings of one log; `every_s` is for how long it is usually not written while steps go on.

    0 where its lines come one by one.
    """

    __slots__ = ("_gaps_s", "_told_s", "_written_t", "every_s")

    def __init__(self) -> None:
        self._gaps_s: deque[float] = deque(maxlen=_WINDOW)
        self._written_t: float | None = None
        self._told_s = 0.0
        self.every_s = 0.0

    @property
    def is_new(self) -> bool:
        """Whether nothing was seen of it yet."""
        return self._written_t is None

    def came(self, steps: Sequence[Step], written_t: float, size: int, *, is_torn: bool) -> bool:
        """Lines of `size` bytes came, written at `written_t`, and told these steps; `is_torn`: the last line
        is not whole. Returns whether `every_s` is another than it was.
        """
        if not steps:
            return False
        is_bunch = len({it.step for it in steps}) >= _BUNCH
        if self._written_t is None:
            self.every_s = _guess_s(steps, size if is_torn else 0) if is_bunch else 0.0
        else:
            self._gaps_s.append(max(0.0, written_t - self._written_t) if is_bunch else 0.0)
            self.every_s = max(self._gaps_s)
        self._written_t = written_t
        return self._is_news()

    def _is_news(self) -> bool:
        longer, shorter = max(self.every_s, self._told_s), min(self.every_s, self._told_s)
        if longer <= shorter * _NEWS:
            return False
        self._told_s = self.every_s
        return True


def _guess_s(steps: Sequence[Step], size: int) -> float:
    """How long it takes, at the pace of these steps, to fill a buffer, or a line that tells several of them.

    `size` is that of their lines, 0 where they lie in no buffer.
    """
    each_s = _step_s(steps)
    rose = sum(later.step - earlier.step for earlier, later in pairwise(steps) if later.step > earlier.step)
    in_buffer = _BUFFER_BYTES / size * rose if size > 0 else 0.0
    return max(in_buffer, _longest_line(steps)) * each_s


def _longest_line(steps: Sequence[Step]) -> int:
    """The most steps that one line tells, as bars do that are drawn one over the other."""
    longest = here = 0
    for earlier, later in pairwise(steps):
        here = here + max(0, later.step - earlier.step) if later.source == earlier.source else 0
        longest = max(longest, here)
    return longest


def _step_s(steps: Sequence[Step]) -> float:
    timed = [it.values["step_time_s"] for it in steps if "step_time_s" in it.values]
    between = [
        (later.t - earlier.t) / (later.step - earlier.step)
        for earlier, later in pairwise(steps)
        if later.step > earlier.step and math.isfinite(later.t - earlier.t)
    ]
    each_s = median(timed or between or [0.0])
    return each_s if math.isfinite(each_s) and each_s > 0 else 0.0
