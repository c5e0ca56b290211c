"""What does the clock of one host read?"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["HostClock"]


@dataclass(frozen=True, slots=True)
class HostClock:
    """A clock that is off by `offset_s`, jumps by `jump_s` at `jump_t`, and is slewed by `slew_s` in an hour.

    All times are true unix seconds.

    >>> HostClock(offset_s=60.0, jump_t=100.0, jump_s=-5.0).reads(100.0)
    155.0
    """

    offset_s: float = 0.0
    jump_t: float = math.inf
    jump_s: float = 0.0
    slew_t: float = math.inf
    slew_s: float = 0.0

    def reads(self, t: float) -> float:
        """What it shows at the true time `t`."""
        shown = t + self.offset_s
        if t >= self.jump_t:
            shown += self.jump_s
        if t >= self.slew_t:
            shown += self.slew_s * min(1.0, (t - self.slew_t) / 3600.0)
        return shown
