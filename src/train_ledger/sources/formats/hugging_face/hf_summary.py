"""What do the lines below `***** train metrics *****` say, which scripts of Hugging Face print at the end?

Its run time is a clock – 0:15:19.02 are 919.02 seconds, and a day stands in words before it – memory is in
MiB and work in 2^30 operations.
"""

from __future__ import annotations

import re

from train_ledger.sources.lines.log_number import log_number

__all__ = ["Summary", "heading", "quantity"]

_HEADING = re.compile(r"(?:^|>> |\] )\*{5} (\w{1,20}) metrics \*{5}\s*\Z")
_ITEM = re.compile(r"(?:^|>>) {2,8}([A-Za-z_][\w/.-]{0,80}) {1,80}= {1,80}(\S.{0,60})\Z")
_CLOCK = re.compile(r"(?:(-?\d{1,6}) days?, )?(\d{1,3}):(\d\d):(\d\d(?:\.\d{1,6})?)\Z")
_UNITS = {"MB": 1 << 20, "GF": 1 << 30}
_MOST = 256


class Summary:
    """The block of one split while it is read; `add` says whether a line belongs to it."""

    def __init__(self, split: str) -> None:
        self.split = split
        self.numbers: dict[str, float] = {}

    def add(self, text: str) -> bool:
        match = _ITEM.search(text.rstrip())
        if match is None or len(self.numbers) >= _MOST:
            return False
        number = quantity(match[2])
        if number is not None:
            self.numbers[match[1]] = number
        return True


def heading(text: str) -> str | None:
    """The split whose block this line opens.

    >>> heading("***** eval metrics *****"), heading('print("***** eval metrics *****")')
    ('eval', None)
    """
    match = _HEADING.search(text[-400:])
    return match[1] if match else None


def quantity(word: str) -> float | None:
    """Seconds, bytes, operations or a plain number.

    >>> quantity("0:15:19.02"), quantity("1 day, 0:00:01.50"), quantity("3MB"), quantity("1.4692")
    (919.02, 86401.5, 3145728.0, 1.4692)
    """
    clock = _CLOCK.match(word)
    if clock:
        days, hours, minutes = int(clock[1] or 0), int(clock[2]), int(clock[3])
        return days * 86_400 + hours * 3600 + minutes * 60 + float(clock[4])
    unit = _UNITS.get(word[-2:])
    number = log_number(word[:-2] if unit else word)
    return None if number is None else number * (unit or 1)
