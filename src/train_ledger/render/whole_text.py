"""How does text that came from anywhere stay text that a strict reader takes?"""

from __future__ import annotations

import re

__all__ = ["whole_text"]

_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def whole_text(value: str) -> str:
    """Half a pair of UTF-16, as in names of files that are no UTF-8, is the replacement character.

    >>> whole_text("rank\\udcff") == "rank\N{REPLACEMENT CHARACTER}"
    True
    """
    return value if value.isascii() else _HALF_A_PAIR.sub("\N{REPLACEMENT CHARACTER}", value)
