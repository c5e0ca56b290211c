"""What is said of an answer, in which order and in which words?

Text and HTML draw the same `Report`, so a person who knows one knows the other: the verdict first, then what
it rests on, then what to do. Everything in a report is harmless to a terminal; HTML still has to escape it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from train_ledger.answer import NextCommand, RuledOut
from train_ledger.render.bars import Bars
from train_ledger.render.curve import Curve
from train_ledger.render.figures import Figures
from train_ledger.render.harmless import harmless
from train_ledger.render.picture import Graph, Lanes, Table
from train_ledger.render.strip import Strip

__all__ = [
    "SHOWN_AT_MOST",
    "Frames",
    "Pair",
    "Point",
    "Report",
    "Row",
    "Section",
    "Tone",
    "commands",
    "pairs",
    "points",
    "ruled_out",
]

Tone: TypeAlias = Literal["trouble", "fine", "unsure"]

SHOWN_AT_MOST = 25
"""Points of one section that are shown; a run of thousands of ranks can miss thousands of dumps."""
_LONGEST_COMMAND = 100_000


@dataclass(frozen=True, slots=True)
class Pair:
    """A name and what holds for it: "group" – "default_pg, ranks 0-3"."""

    label: str
    text: str

    def __post_init__(self) -> None:
        _make_harmless(self, "label", "text")


@dataclass(frozen=True, slots=True)
class Point:
    """One sentence of a list."""

    text: str

    def __post_init__(self) -> None:
        _make_harmless(self, "text")


@dataclass(frozen=True, slots=True)
class Frames:
    """A stack, innermost call first, and whose it is."""

    lines: tuple[str, ...]
    title: str = ""

    def __post_init__(self) -> None:
        _make_harmless(self, "title")
        object.__setattr__(self, "lines", tuple(map(harmless, self.lines)))


Row: TypeAlias = Pair | Point | Frames | Figures | NextCommand | Table | Graph | Lanes | Strip | Bars | Curve


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under a heading; what stands right below the verdict has an empty one."""

    heading: str
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        _make_harmless(self, "heading")


@dataclass(frozen=True, slots=True)
class Report:
    """An answer laid out for a person; sections without rows are left out by whoever builds it."""

    verdict: str
    tone: Tone
    sections: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        _make_harmless(self, "verdict")


def _make_harmless(record: object, *names: str) -> None:
    """Here, once, so that whoever makes a record of what a log says cannot forget it."""
    for name in names:
        object.__setattr__(record, name, harmless(getattr(record, name)))


def pairs(heading: str, labelled: Iterable[tuple[str, str | None]]) -> list[Section]:
    """A section of the pairs that have a text; none where no pair has."""
    rows = tuple(Pair(label, text) for label, text in labelled if text)
    return [Section(heading, rows)] if rows else []


def points(heading: str, sentences: Iterable[str]) -> list[Section]:
    """A section of sentences, each once, the first `SHOWN_AT_MOST` of them."""
    told = list(dict.fromkeys(harmless(sentence) for sentence in sentences))
    shown = [Point(sentence) for sentence in told[:SHOWN_AT_MOST]]
    if more := len(told) - len(shown):
        shown.append(Point(f"and {more} more; --json lists all"))
    return [Section(heading, tuple(shown))] if shown else []


def ruled_out(entries: Iterable[RuledOut]) -> list[Section]:
    return points("ruled out", (f"{entry.cause}: {entry.by}" for entry in entries))


def commands(entries: Sequence[NextCommand]) -> list[Section]:
    """The commands to run next; never cut short, for half a command is another command."""
    rows = tuple(
        NextCommand(why=harmless(entry.why), command=harmless(entry.command, longest=_LONGEST_COMMAND))
        for entry in dict.fromkeys(entries)
    )
    return [Section("next", rows)] if rows else []
