"""Which exception ended a rank, by the traceback in a log?

Python prints the frames, indented, and last the exception at the start of a line. Lines of ranks that share a
log are told apart by what stands in front of each. Of a chain of exceptions the first is what went wrong, of
several tracebacks of a rank the first as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from train_ledger.sources.log_line import LogLine

__all__ = ["MARKS", "Raised", "Tracebacks"]

MARKS: tuple[bytes, ...] = (b"Traceback (most recent call last)",)

_START = "Traceback (most recent call last)"
_RAISED = re.compile(
    r"([A-Za-z_][\w.]{0,200}?(?:Error|Exception|Interrupt|Exit|Failure|Stop\w*)|[A-Z]\w{0,80})"
    r"(?:: (.{0,2000}))?$"
)
_LONGEST = 500
_MOST_OPEN = 4096
_INSTALLED = ("site-packages/", "dist-packages/", "/lib/python", "<frozen ")


@dataclass(frozen=True, slots=True)
class Raised:
    """`exception` is "Type: message", the type without its module.

    `frame` is the innermost of the user's own code, as printed; the outermost of all where there is none.
    """

    exception: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    frame: str | None = None
    source: str = ""


class Tracebacks:
    """Follows the tracebacks of one log; `raised` holds the first of each rank."""

    def __init__(self) -> None:
        self.raised: dict[tuple[str | None, int | None, int | None], Raised] = {}
        self._open: dict[tuple[str | None, int | None, int | None], str | None] = {}

    @property
    def wants_more(self) -> bool:
        """Whether a traceback is open, so that the next lines matter whatever stands in them."""
        return bool(self._open)

    def add(self, line: LogLine, source: str = "") -> None:
        key = (line.host, line.rank, line.local_rank)
        text = line.text.rstrip()
        if text.lstrip().startswith(_START):
            if key not in self.raised and len(self._open) < _MOST_OPEN:
                self._open[key] = None
            return
        if key not in self._open or not text:
            return
        if text[0] in " \t":
            call = text.strip()
            is_own = not any(part in call for part in _INSTALLED)
            if call.startswith("File ") and (is_own or self._open[key] is None):
                self._open[key] = call
            return
        frame = self._open.pop(key)
        if match := _RAISED.match(text):
            message = f": {match[2]}" if match[2] else ""
            exception = (match[1].rpartition(".")[2] + message)[:_LONGEST]
            self.raised[key] = Raised(exception, line.rank, line.local_rank, line.host, frame, source)
