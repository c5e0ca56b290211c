"""How does a table of numbers and ranks fit into a terminal of any width?

Drawn in ASCII, without frames, so that it survives a pipe, a ticket and a chat. The number at which the ranks
part carries a ">", what differs or is absent there a "!".
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from train_ledger.render.harmless import harmless
from train_ledger.render.picture import Cell, Column, Mark, Step, Table
from train_ledger.render.ranks import ranks_in_brief

__all__ = ["Word", "grid_lines", "heading_of", "ruled_lines"]

_NATURAL = 160
"""Columns of a table that nobody gave a width; longer cells are wrapped."""
_LONGEST_RANKS = 36
_LINE_BELOW_HEAD = "    \n    \n -- \n    \n    \n    \n    \n    \n"
_STYLES: dict[Mark, str] = {"odd": "bold red", "absent": "bold red", "unknown": "yellow", "done": "dim"}


def grid_lines(table: Table, *, width: int | None, colour: bool) -> Iterator[str]:
    """The table line by line, indented as the rest of a report."""
    heads = [Word(table.head)]
    for column in table.columns:
        style = "bold red" if column.note.startswith("culprit") else "bold"
        heads.append(Word(heading_of(column), style))
    yield from ruled_lines(heads, [[*_row(step)] for step in table.steps], width=width, colour=colour)
    for note in table.notes:
        yield from textwrap.wrap(
            harmless(note), (width or _NATURAL) - 2, initial_indent="  ", subsequent_indent="  "
        )


class Word(NamedTuple):
    """What stands in a cell, and its style in rich's words."""

    text: str
    style: str = ""


def ruled_lines(
    heads: Sequence[Word],
    rows: Iterable[Sequence[Word]],
    *,
    width: int | None,
    colour: bool,
    unbroken: Collection[int] = (0,),
) -> Iterator[str]:
    """Columns under their heads with a line between.

    Where `width` is too small cells are wrapped, but for those of the columns that stay `unbroken`.
    """
    from rich.box import Box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    line = Box(_LINE_BELOW_HEAD, ascii=True)
    grid = Grid(box=line, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for place, head in enumerate(heads):
        grid.add_column(Text(head.text, style=head.style), no_wrap=place in unbroken, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(word.text, style=word.style) for word in row))
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or _NATURAL,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    console.print(Padding(grid, (0, 0, 0, 2)))
    yield from (line.rstrip() for line in out.getvalue().splitlines())


def heading_of(column: Column) -> str:
    """The ranks of a column and what they are; long lists of ranges are cut, their number said."""
    ranks = ranks_in_brief(column.ranks, longest=_LONGEST_RANKS) if column.ranks else "any rank"
    return f"{ranks} ({column.note})" if column.note else ranks


def _row(step: Step) -> Iterator[Word]:
    yield Word(f"> {step.label}", "bold") if step.here else Word(f"  {step.label}")
    for cell in step.cells:
        yield Word(_flagged(cell), _STYLES.get(cell.mark, ""))


def _flagged(cell: Cell) -> str:
    return f"! {cell.text}" if cell.mark in ("odd", "absent") else cell.text
