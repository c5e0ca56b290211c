"""Which signal does a word of a launcher's log mean?"""

from __future__ import annotations

import signal

__all__ = ["signal_number"]


def signal_number(word: str) -> int | str:
    """Its number; the word itself where this machine knows no such signal.

    >>> signal_number("SIGTERM"), signal_number("15"), signal_number("SIGNAL_OF_ELSEWHERE")
    (15, 15, 'SIGNAL_OF_ELSEWHERE')
    """
    if word.isdecimal():
        return int(word)
    known = getattr(signal, word, None) if word.startswith("SIG") else None
    return int(known) if isinstance(known, signal.Signals) else word
