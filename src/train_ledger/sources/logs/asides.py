"""Is the traceback that begins now one of the training itself, or of something beside it?

Python says it in the line before: an exception ended a thread that is not the main one, or went nowhere since
it was raised while something was cleaned up. Of the latter some have no traceback at all (a broken pipe of
stdout), so that what comes long after is of the training; and what was raised while such an exception was
handled has a traceback of its own, which is beside the training, too.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping

__all__ = ["ASIDE_MARKS", "Asides"]

_CHAINED = "above exception"
"""In both lines that Python prints between an exception and the one that it led to."""
ASIDE_MARKS: tuple[bytes, ...] = (b"Exception in thread ", b"Exception ignored ", _CHAINED.encode())
_THREAD = re.compile(r"Exception in thread (.{1,200}?):?$")
_IGNORED = re.compile(r"Exception ignored (?:in|on|while)\b:? {0,2}(.{0,200}?):?$")
_BETWEEN = 32
"""So many lines of others may stand before the traceback that is announced."""
_MOST = 4096


class Asides:
    """What was announced in a log, for each `key` of whose lines it is."""

    def __init__(self) -> None:
        self._until: dict[Hashable, int] = {}
        self._whose: dict[Hashable, Mapping[str, str]] = {}

    def announces(self, key: Hashable, text: str, number: int) -> bool:
        """Whether the line, of this number, says of whom the next traceback of `key` is."""
        whose = self._whose.get(key) if _CHAINED in text else _whose(text)
        if whose is None or (key not in self._whose and len(self._whose) >= _MOST):
            return False
        self._whose[key], self._until[key] = whose, number + _BETWEEN
        return True

    def of_begun(self, key: Hashable, number: int) -> Mapping[str, str]:
        """`thread` or `ignored_in` of the traceback that begins here; empty where it is of the training."""
        if number <= self._until.pop(key, -1):
            return self._whose[key]
        self._whose.pop(key, None)
        return {}


def _whose(text: str) -> Mapping[str, str] | None:
    if thread := _THREAD.match(text):
        return {"thread": thread[1]}
    ignored = _IGNORED.match(text)
    return {"ignored_in": ignored[1]} if ignored else None
