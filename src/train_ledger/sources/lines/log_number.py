"""Which number do these characters of a log stand for?"""

from __future__ import annotations

import math
import re

__all__ = ["log_number"]

_GROUPED = re.compile(r"[-+]?\d{1,3}(?:[,_]\d{3})+(?:\.\d*)?\Z")
_PLAIN = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\Z")
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_LONGEST = 64


def log_number(text: str) -> float | None:
    """The number, exponent, thousands and all; None for what is no number, such as N/A.

    >>> log_number("6.05e-06"), log_number("1,234.5"), log_number("-inf"), log_number("N/A")
    (6.05e-06, 1234.5, -inf, None)
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if _PLAIN.match(text):
        return float(text)
    word = _WORDS.get(text.lstrip("+-").lower())
    if word is not None:
        return -word if text.startswith("-") else word
    if _GROUPED.match(text):
        return float(text.replace(",", "").replace("_", ""))
    return None
