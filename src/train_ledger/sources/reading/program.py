"""Is this a program's output, and of a program that we know?

A format is believed once two of its step lines came, or one that says so much that it can be nothing else;
source code that a program printed is not taken for its output.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from train_ledger.facts import Event, Fact, Step
from train_ledger.sources.formats import LineFormat

__all__ = ["FormatSeen", "Program", "is_source_code"]

_UNMISTAKABLE = 3
_MOST_FIELDS = 4096
"""Names are the log's, and some hold numbers that count on."""
_LONGEST_LINE = 4096
"""Of a program's text; what is longer was printed."""
_BEGINS = re.compile(
    r"\s{0,200}(?:#(?!#)|//|def |class |import |return |raise |assert |elif |print\w{0,20}\()"
).match
_HOLDS = (
    ("print", re.compile(r"\bprint\w{0,20}\([f\"']").search),
    ('f"', re.compile(r"\bf\"").search),
    ("f'", re.compile(r"\bf'").search),
    (".format(", re.compile(r"\.format\(").search),
    ("log", re.compile(r"\blog(?:ger|ging)?\.\w{1,12}\(").search),
    ("{", re.compile(r"\{\w[^{}]{0,80}:[.,]?\d{0,4}[dfeg]\}").search),
)
"""What tells a program's text wherever it stands, each behind the characters that must stand there."""


@dataclass(slots=True)
class FormatSeen:
    """What a format told in a file: how much, and which of the fields that it can tell."""

    name: str
    knows: frozenset[str]
    steps: int = 0
    events: int = 0
    faults: int = 0
    fields: set[str] = field(default_factory=set)

    def count(self, fact: Fact) -> None:
        if isinstance(fact, Step):
            self.steps += 1
            if len(self.fields) < _MOST_FIELDS:
                self.fields.update(fact.values)
        elif isinstance(fact, Event):
            self.events += 1
        else:
            self.faults += 1

    @property
    def not_seen(self) -> tuple[str, ...]:
        """Fields that the format can tell and never did here; none are asked of a file without steps."""
        return tuple(sorted(self.knows - self.fields)) if self.steps else ()


class Program:
    """One format at work in one file, and whether its steps are believed."""

    def __init__(self, kind: type[LineFormat], written_t: float | None) -> None:
        self.format = kind()
        if hasattr(self.format, "written_t"):
            self.format.written_t = written_t
        self.marks = kind.marks
        self.seen = FormatSeen(kind.name, kind.knows)
        self.speaks_for_its_rank = getattr(kind, "speaks_for_its_rank", True)
        self.numbers_attempts = getattr(kind, "numbers_attempts", False)
        self.may_want_more = hasattr(kind, "wants_more")
        self.is_believed = not kind.marks
        self.doubted: Step | None = None

    @property
    def wants_more(self) -> bool:
        return self.may_want_more and self.format.wants_more  # type: ignore[attr-defined]

    @property
    def damaged(self) -> Counter[str]:
        return getattr(self.format, "damaged", None) or Counter()

    def believed(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        for fact in facts:
            if not isinstance(fact, Step) or self.is_believed:
                yield fact
            elif self.doubted is None and len(fact.values) < _UNMISTAKABLE:
                self.doubted = fact
            else:
                self.is_believed = True
                if self.doubted is not None:
                    yield self.doubted
                    self.doubted = None
                yield fact


def is_source_code(text: str) -> bool:
    """Whether a line is of a program's text, or of a comment.

    >>> is_source_code('    print(f"step:{step}")'), is_source_code("step:10/100 train_time:5ms")
    (True, False)
    """
    if _BEGINS(text) is not None:
        return True
    return any(mark in text and holds(text, 0, _LONGEST_LINE) is not None for mark, holds in _HOLDS)
