"""Which moment does a time in a log stand for?

Trainers write the time of their own host's clock without a zone; it is taken in the zone of this machine.
"""

from __future__ import annotations

import re
import time
from datetime import datetime

__all__ = ["TIME", "log_time", "time_without_year"]

TIME = r"\d{4}-?\d\d-?\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
"""A pattern of what `log_time` reads."""

_TIME = re.compile(r"(\d{4}-?\d\d-?\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")


_DAY_S = 86_400.0


def log_time(text: str) -> float | None:
    """Unix seconds of a date and time; None for what is none.

    >>> log_time("2026-02-03 04:05:06,250Z"), log_time("20260203 04:05:06Z"), log_time("2026-02-31 00:00:00")
    (1770091506.25, 1770091506.0, None)
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    try:
        t = datetime.fromisoformat(match[1] + (match[3] or "").replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return t + (float(f"0.{match[2]}") if match[2] else 0.0)


def time_without_year(
    written_t: float, month: int, day: int, hour: int, minute: int, second: int, fraction_s: float = 0.0
) -> float:
    """Unix seconds in the year in which the file was written, or the one before where that lies ahead.

    `written_t` is when it was written last. Raises as time.mktime does for what it cannot reckon.
    """
    year = time.localtime(written_t).tm_year
    t = time.mktime((year, month, day, hour, minute, second, 0, 0, -1)) + fraction_s
    if t <= written_t + _DAY_S:
        return t
    return time.mktime((year - 1, month, day, hour, minute, second, 0, 0, -1)) + fraction_s
