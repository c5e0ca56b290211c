"""How does an answer look in a terminal, at three in the morning?

The verdict is the first line. Prose is wrapped to the width that is asked for; a command never is: it stands
on its own line, ready to be pasted, and with a comment above it that says why.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping
from typing import TextIO

from train_ledger.answer import Diagnosis, HangAnswer, NextCommand
from train_ledger.render.figures import Figures, figures_lines
from train_ledger.render.grid import grid_lines
from train_ledger.render.harmless import harmless
from train_ledger.render.layout import report_of
from train_ledger.render.picture import Picture, Table
from train_ledger.render.report import Frames, Pair, Point, Report, Row, Section
from train_ledger.render.strip import Strip, strip_lines

__all__ = ["as_text", "wants_colour"]

_STYLES = {
    "trouble": "\x1b[1;31m",
    "fine": "\x1b[1;32m",
    "unsure": "\x1b[1;33m",
    "heading": "\x1b[1m",
    "label": "\x1b[2m",
    "why": "\x1b[2m",
    "command": "\x1b[36m",
}
_PLAIN = "\x1b[0m"
_NARROWEST = 40


def as_text(
    answer: HangAnswer | Diagnosis | Report,
    *,
    width: int | None = None,
    colour: bool = False,
    currency: str = "",
    picture: Picture | None = None,
) -> str:
    """The answer for a person, each line ended.

    `width` is the number of columns to which prose is wrapped; None wraps nothing, which is what a pipe or
    a file wants. `picture` adds the tables of a hang.
    """
    report = report_of(answer, currency=currency, picture=picture)
    labels = [len(row.label) for section in report.sections for row in section.rows if isinstance(row, Pair)]
    pen = _Pen(width, colour, max(labels, default=0))
    lines = [*pen.prose(report.verdict, style=report.tone)]
    for section in report.sections:
        lines += ["", *pen.section(section)] if section.heading else pen.section(section)
    told = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    return "\n".join(told) + "\n"


def wants_colour(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Colour only on a terminal that has it, or where FORCE_COLOR or CLICOLOR_FORCE asks for it.

    Never against NO_COLOR (no-color.org).
    """
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return environment.get("TERM") != "dumb" and stream.isatty()


class _Pen:
    """Writes rows in one width, coloured or not, with labels in a column of one width."""

    def __init__(self, width: int | None, colour: bool, labels: int) -> None:
        self._width = None if width is None else max(width, _NARROWEST)
        self._colour = colour
        self._labels = labels

    def section(self, section: Section) -> Iterator[str]:
        if section.heading:
            yield self._styled(section.heading, "heading")
        for row in section.rows:
            yield from self._row(row)

    def _row(self, row: Row) -> Iterator[str]:
        if isinstance(row, Pair):
            yield from self.prose(row.text, first=f"  {row.label:<{self._labels}}  ", first_style="label")
        elif isinstance(row, Point):
            yield from self.prose(row.text, first="  - ")
        elif isinstance(row, Frames):
            yield from self.prose(row.title, first="  ") if row.title else ()
            yield from (f"    {line}" for line in row.lines)
        elif isinstance(row, Figures):
            yield from self.prose(row.title, first="  ") if row.title else ()
            yield from (f"    {line}" for line in figures_lines(row))
        elif isinstance(row, Table):
            yield from self._table(row)
        elif isinstance(row, Strip):
            yield from (f"    {line}" for line in ("", *strip_lines(row)))
        elif isinstance(row, NextCommand):  # what is left is drawn on a page alone
            yield from self.prose(row.why, first="  # ", following="  # ", style="why")
            yield "  " + self._styled(row.command, "command")

    def _table(self, table: Table) -> Iterator[str]:
        yield ""
        yield from self.prose(harmless(table.title), first="  ")
        yield from grid_lines(table, width=self._width, colour=self._colour)
        yield ""

    def prose(
        self,
        text: str,
        *,
        first: str = "",
        following: str | None = None,
        style: str = "",
        first_style: str = "",
    ) -> Iterator[str]:
        """`text` behind `first`, wrapped with further lines aligned to it (or behind `following`)."""
        following = " " * len(first) if following is None else following
        for number, line in enumerate(self._wrapped(text, len(first)) or [""]):
            opening = following if number else self._styled(first, first_style)
            yield (opening + self._styled(line, style)).rstrip()

    def _wrapped(self, text: str, taken: int) -> list[str]:
        if self._width is None:
            return [text]
        return textwrap.wrap(
            text, max(self._width - taken, _NARROWEST // 2), break_long_words=False, break_on_hyphens=False
        )

    def _styled(self, text: str, style: str) -> str:
        return f"{_STYLES[style]}{text}{_PLAIN}" if self._colour and style and text else text
