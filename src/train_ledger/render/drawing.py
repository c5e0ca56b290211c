"""How is a hang drawn on a page?

Tables and lanes are HTML tables, which scroll within themselves on a narrow screen. No script, and every word
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from train_ledger.render.grid import heading_of
from train_ledger.render.harmless import harmless
from train_ledger.render.picture import Cell, Column, Lane, Lanes, Step, Table

__all__ = ["lanes_html", "notes_html", "table_html"]


def table_html(table: Table) -> str:
    """Numbers downwards, ranks across."""
    head = "".join(_heading(column) for column in table.columns)
    body = "".join(_step(step) for step in table.steps)
    return (
        f'<div class="scroll"><table class="numbers">\n<caption><span>{_text(table.title)}</span></caption>\n'
        f'<thead><tr><th scope="col">{_text(table.head)}</th>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>{notes_html(table.notes)}"
    )


def _heading(column: Column) -> str:
    kind = ' class="culprit"' if column.note.startswith("culprit") else ""
    return f'<th scope="col"{kind}>{_text(heading_of(column))}</th>'


def _step(step: Step) -> str:
    here = ' class="here"' if step.here else ""
    label = f"▶ {step.label}" if step.here else step.label
    return f'<tr{here}><th scope="row">{_text(label)}</th>{"".join(map(_cell, step.cells))}</tr>\n'


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return '<td class="none"></td>'
    kind = f' class="{cell.mark}"' if cell.mark else ""
    return f"<td{kind}>{escape(cell.text)}</td>"


_LANES = "in the order of issue; the columns are laid upon each other at the same operation"


def lanes_html(lanes: Lanes) -> str:
    """Ranks downwards, their operations across in the order of issue."""
    rows = "".join(map(_lane, lanes.lanes))
    places = range(len(lanes.lanes[0].cells)) if lanes.lanes else range(0)
    head = "".join(f'<th scope="col">{_place(place - lanes.anchor)}</th>' for place in places)
    return (
        f'<div class="scroll"><table class="lanes">\n<caption><span>{_LANES}</span></caption>\n'
        f'<thead><tr><th scope="col">ranks</th>{head}'
        f"</tr></thead>\n<tbody>\n{rows}</tbody></table></div>{notes_html(lanes.notes)}"
    )


def _place(distance: int) -> str:
    return "last before it" if distance == 0 else f"{distance:+d}"


def _lane(lane: Lane) -> str:
    kind, note = (' class="culprit"', "culprit") if lane.is_culprit else ("", "")
    return (
        f'<tr><th scope="row"{kind}>{_text(heading_of(Column(lane.ranks, note)))}</th>'
        f"{''.join(map(_cell, lane.cells))}</tr>\n"
    )


def notes_html(notes: Iterable[str]) -> str:
    """A line each, below what is drawn."""
    return "".join(f'\n<p class="why">{_text(note)}</p>' for note in notes)


def _text(text: str) -> str:
    return escape(harmless(text))
