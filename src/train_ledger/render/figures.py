"""How does a table of figures stand in a terminal and on a page?

Names on the left, figures to the right of their column. On a page narrower than the table each row becomes a
block with the name of the column before each cell, so that a phone shows all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from train_ledger.render.harmless import harmless
from train_ledger.render.picture import Cell

__all__ = ["Figures", "figures_html", "figures_lines"]

_STAYS_WHOLE = 3
"""Columns that a phone has room for."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Rows of as many cells as there are `heads`; columns in `left` hold words, the others figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell | str, ...], ...]
    title: str = ""
    left: frozenset[int] = frozenset((0,))

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", harmless(self.title))
        object.__setattr__(self, "heads", tuple(map(harmless, self.heads)))
        object.__setattr__(self, "rows", tuple(tuple(map(_cell, row)) for row in self.rows))


def _cell(cell: Cell | str) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def figures_lines(table: Figures) -> Iterator[str]:
    """The heads and the rows in columns, without a frame; nothing is wrapped."""
    rows = [table.heads, *([_words(cell) for cell in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            f"{cell:<{width}}" if place in table.left else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _words(cell: Cell | str) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def figures_html(table: Figures) -> str:
    """An HTML table; the first cell of each row is its head."""
    caption = f"<caption>{escape(table.title)}</caption>\n" if table.title else ""
    head = "".join(_head(table, place) for place in range(len(table.heads)))
    body = "".join(f"<tr>{''.join(_cells(table, row))}</tr>\n" for row in table.rows)
    wide = " wide" if len(table.heads) > _STAYS_WHOLE else ""
    return (
        f'<div class="scroll{wide}"><table class="figures">\n{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _head(table: Figures, place: int) -> str:
    return f'<th scope="col"{_kind(table, place)}>{escape(table.heads[place])}</th>'


def _cells(table: Figures, row: Sequence[Cell | str]) -> Iterator[str]:
    for place, cell in enumerate(row):
        text = escape(_words(cell))
        if place == 0:
            yield f'<th scope="row">{text}</th>'
            continue
        of = f' data-of="{escape(table.heads[place])}"' if table.heads[place] else ""
        yield f"<td{_kind(table, place, cell)}{of}>{text}</td>"


def _kind(table: Figures, place: int, cell: Cell | str = "") -> str:
    kinds = [] if place in table.left else ["figure"]
    kinds += [cell.mark] if isinstance(cell, Cell) and cell.mark else []
    return f' class="{" ".join(kinds)}"' if kinds else ""
