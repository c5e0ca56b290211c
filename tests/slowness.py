"""How many times as long does the machine take now as when it has nothing else to do?"""

from __future__ import annotations

import json
import statistics
import time

__all__ = ["slowness"]

_FIELDS = {f"field_{number}": number / 7 for number in range(10)}
_QUIET_S = 6e-6
"""Ten numbers as JSON take so long there."""


def slowness() -> float:
    """At least 1: what a limit of a price is multiplied by that was set on a quiet machine."""
    took_s = []
    for _ in range(500):
        began_s = time.perf_counter()
        json.dumps(_FIELDS)
        took_s.append(time.perf_counter() - began_s)
    return max(1.0, statistics.median(took_s) / _QUIET_S)
