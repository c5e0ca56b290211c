"""Which exception ended a rank, by the traceback in a log?

Python prints the frames, indented, and last the exception at the start of a line. Lines of ranks that share a
log are told apart by what stands in front of each; torch puts `[rank3]:` in front of the exception that ends
the process alone. One that the program caught, logged and went on from ended nobody: more follows in its log.
Of a chain of exceptions the first is what went wrong, unless it says only that a command failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.logs.asides import ASIDE_MARKS, Asides

__all__ = ["MARKS", "Raised", "Tracebacks"]

MARKS: tuple[bytes, ...] = (
    b"Traceback (most recent call last)",
    *ASIDE_MARKS,
)

_START = "Traceback (most recent call last)"
_RAISED = re.compile(
    r"([A-Za-z_][\w.]{0,200}?(?:Error|Exception|Interrupt|Exit|Failure|Stop\w*)|[A-Z]\w{0,80})"
    r"(?:: (.{0,2000}))?$"
)
_GLUED = ("]", "}", "^C")
"""What a line that was not ended ends with: a bar, a record, what the terminal shows of Ctrl-C."""
_LONGEST = 500
_FRONT = re.compile(r"([\w.-]{1,80}): ")
_MOST_OPEN = 4096
_MOST_HOSTS = 4096
_AFTERWARDS = 40
"""Lines that may follow the last exception: of exit handlers and of C++."""
_CHAIN = 8
"""Lines from one exception to the next that was raised while it was handled."""
_INSTALLED = ("site-packages/", "dist-packages/", "/lib/python", "<frozen ")


@dataclass(frozen=True, slots=True)
class Raised:
    """`exception` is "Type: message", the type without its module.

    `frame` is the innermost of the user's own code, as printed; the outermost of all where there is none.
    `in_front` says that its rank stood in front of each line, `is_last` that hardly anything follows it,
    `thread` which thread beside the main one it ended, `ignored_in` in what Python itself passed over it.
    """

    exception: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    frame: str | None = None
    source: str = ""
    in_front: bool = False
    is_last: bool = False
    thread: str | None = None
    ignored_in: str | None = None

    @property
    def is_aside(self) -> bool:
        """Whether it ended, if anything, something beside the training."""
        return self.thread is not None or self.ignored_in is not None

    @property
    def ended_its_rank(self) -> bool:
        """By its front, or because hardly anything follows; one aside ended none."""
        return not self.is_aside and (self.in_front or self.is_last)


_Key = tuple[str | None, int | None, int | None]


@dataclass(slots=True)
class _Begun:
    """A traceback that is open: of whom it is, where not of the training, and its frame so far."""

    aside: Mapping[str, str]
    frame: str | None = None


class Tracebacks:
    """Follows the tracebacks of one log; `raised` gives, once its end is reached, one of each rank."""

    def __init__(self) -> None:
        self._found: dict[_Key, tuple[int, Raised]] = {}
        self._open: dict[_Key, _Begun] = {}
        self._hosts: set[str] = set()
        self._asides = Asides()

    @property
    def wants_more(self) -> bool:
        """Whether a traceback is open, so that the next lines matter whatever stands in them."""
        return bool(self._open)

    def raised(self, last_number: int) -> list[Raised]:
        """What each rank raised; `last_number` is that of the last line of the log."""
        return [
            replace(it, is_last=0 <= last_number - number <= _AFTERWARDS)
            for number, it in self._found.values()
        ]

    def own(self, line: LogLine) -> LogLine:
        """The line without what srun or pdsh put in front of an open traceback, and so of this line, too."""
        bare = self._open and line.rank is None and line.host is None
        front = _FRONT.match(line.text) if bare else None
        if front is None or not (front[1].isdecimal() or front[1] in self._hosts):
            return line
        host = None if front[1].isdecimal() else front[1]
        return replace(line, text=line.text[front.end() :], host=host)

    def add(
        self, line: LogLine, number: int = 0, source: str = "", *, in_front: bool = False
    ) -> Raised | None:
        """One line, its number, and whether its rank stood in front; returns the exception it completes."""
        key = (line.host, line.rank, line.local_rank)
        text = line.text.rstrip()
        if self._asides.announces(key, text, number):
            return None
        if _begins(text):
            if line.host is not None and len(self._hosts) < _MOST_HOSTS:
                self._hosts.add(line.host)
            aside = self._asides.of_begun(key, number)
            if self._is_wanted(key, number) and len(self._open) < _MOST_OPEN:
                self._open[key] = _Begun(aside)
            return None
        if key not in self._open or not text:
            return None
        if text[0] in " \t":
            call = text.strip()
            is_own = not any(part in call for part in _INSTALLED)
            if call.startswith("File ") and (is_own or self._open[key].frame is None):
                self._open[key].frame = call
            return None
        raised = _raised(text, line, self._open.pop(key), source, in_front=in_front)
        if raised is not None and not (raised.is_aside and key in self._found):
            self._found[key] = (number, raised)
        return raised

    def _is_wanted(self, key: _Key, number: int) -> bool:
        """One that ended its rank stays, and so does the first of a chain; else the later one counts."""
        if key not in self._found:
            return True
        before, it = self._found[key]
        if it.is_aside:
            return True
        is_of_command = it.exception.startswith("CalledProcessError")
        return is_of_command or (not it.in_front and number - before > _CHAIN)


def _raised(text: str, line: LogLine, begun: _Begun, source: str, *, in_front: bool) -> Raised | None:
    if (match := _RAISED.match(text)) is None:
        return None
    message = f": {match[2]}" if match[2] else ""
    return Raised(
        (match[1].rpartition(".")[2] + message)[:_LONGEST],
        line.rank,
        line.local_rank,
        line.host,
        begun.frame,
        source,
        in_front,
        thread=begun.aside.get("thread"),
        ignored_in=begun.aside.get("ignored_in"),
    )


def _begins(text: str) -> bool:
    """Whether a traceback begins in this line, be it behind a progress bar or a ^C.

    >>> _begins("  3%|#  | 12/345 [00:07<06:50, 1.23s/it]Traceback (most recent call last):")
    True
    """
    at = text.find(_START)
    front = text[:at].rstrip() if at >= 0 else "-"
    return not front or (front.endswith(_GLUED) and len(text) <= at + len(_START) + 1)
