"""What does a log format promise to whoever reads a log with it?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

from train_ledger.facts import Fact
from train_ledger.sources.lines.log_line import LogLine

__all__ = ["Document", "LineFormat", "OwnedFormat"]


class LineFormat(Protocol):
    """Reads the lines of one program out of a log that others may write to, too; made anew for each file.

    `name` is what people call the format. One of `marks` stands in every line that it can want, so that a
    quick look passes over the rest. `knows` are the names of train_ledger.fields that it can yield: those
    that never came are reported as not seen.

    Optional attributes: `wants_more`, true while a block is open whose next lines matter whatever stands in
    them; `damaged`, a Counter by reason of lines that are of this format and could not be taken; `written_t`,
    set to when the file was written last (unix seconds or None). Of the class: `speaks_for_its_rank`, False
    where a rank's file or front says nothing of whom the lines are about; `numbers_attempts`, True where the
    lines tell their attempt themselves.
    """

    name: ClassVar[str]
    marks: ClassVar[tuple[bytes, ...]]
    knows: ClassVar[frozenset[str]]

    def read(self, line: LogLine, source: str) -> Iterable[Fact]:
        """The facts that this line completes; none for a line of another program, or of source code.

        `source` is "file:line". A fact's time is nan, and its rank None, where the line (or its front) tells
        none. The attempt stays 0: who reads the file counts steps that go back. Never raises.
        """
        ...

    def end(self) -> Iterable[Fact]:
        """What was still open when the file ended."""
        ...


class OwnedFormat(LineFormat, Protocol):
    """Reads all lines of a file of its own; `marks` is empty."""

    @classmethod
    def fits(cls, head: bytes, file_name: str) -> bool:
        """Whether a file of this name that begins with `head` (its first 4096 bytes or fewer) is one."""
        ...


class Document(Protocol):
    """Reads a file as a whole."""

    name: ClassVar[str]
    knows: ClassVar[frozenset[str]]

    def fits(self, head: bytes, file_name: str) -> bool:
        """As `OwnedFormat.fits`."""
        ...

    def facts(self, content: bytes, source: str) -> Iterable[Fact]:
        """All that it says; raises ValueError, in words for a person, for one that is damaged."""
        ...
