"""How is a hang drawn on a page?

Tables and lanes are HTML tables, which scroll within themselves on a narrow screen; the graph is SVG. No
script, no coordinate from a log, and every word escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from train_ledger.render.grid import heading_of
from train_ledger.render.harmless import harmless
from train_ledger.render.picture import Cell, Column, Edge, Graph, Lane, Lanes, Node, Step, Table
from train_ledger.render.ranks import ranks_in_brief

__all__ = ["graph_svg", "lanes_html", "table_html"]


def table_html(table: Table) -> str:
    """Numbers downwards, ranks across."""
    head = "".join(_heading(column) for column in table.columns)
    body = "".join(_step(step) for step in table.steps)
    return (
        f'<div class="scroll"><table class="numbers">\n<caption>{_text(table.title)}</caption>\n'
        f'<thead><tr><th scope="col">{_text(table.head)}</th>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>{_notes(table.notes)}"
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
        f'<div class="scroll"><table class="lanes">\n<caption>{_LANES}</caption>\n'
        f'<thead><tr><th scope="col">ranks</th>{head}'
        f"</tr></thead>\n<tbody>\n{rows}</tbody></table></div>{_notes(lanes.notes)}"
    )


def _place(distance: int) -> str:
    return "last before it" if distance == 0 else f"{distance:+d}"


def _lane(lane: Lane) -> str:
    kind, note = (' class="culprit"', "culprit") if lane.is_culprit else ("", "")
    return (
        f'<tr><th scope="row"{kind}>{_text(heading_of(Column(lane.ranks, note)))}</th>'
        f"{''.join(map(_cell, lane.cells))}</tr>\n"
    )


def _notes(notes: Iterable[str]) -> str:
    return "".join(f'\n<p class="why">{_text(note)}</p>' for note in notes)


_WIDTH, _HEIGHT, _PITCH = 200, 44, 62
_BETWEEN = 210
"""Room between two layers, for the labels of the edges."""
_EDGE = 12
_LABELS = 2
_LETTERS = 28


def graph_svg(graph: Graph) -> str:
    """The root on the left, who waits for it to the right; arrows point at the one that is waited for."""
    layers = [
        list(them) for _, them in groupby(range(len(graph.nodes)), key=lambda it: graph.nodes[it].layer)
    ]
    of_circle = any(_in_one_layer(edge, graph.nodes) for edge in graph.edges)
    left = _EDGE + (_BETWEEN if of_circle else 0)
    at = {
        place: (left + column * (_WIDTH + _BETWEEN), _EDGE + row * _PITCH)
        for column, them in enumerate(layers)
        for row, place in enumerate(them)
    }
    width = left + len(layers) * (_WIDTH + _BETWEEN) - _BETWEEN + _EDGE
    height = max(map(len, layers)) * _PITCH + 2 * _EDGE
    edges = "".join(_edges(graph, at))
    nodes = "".join(_node(node, *at[place]) for place, node in enumerate(graph.nodes))
    note = (f"{graph.left_out} more ranks are not drawn",) if graph.left_out else ()
    return (
        f'<div class="scroll"><svg class="graph" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n<title>who waits for whom</title>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>\n'
        f"{edges}{nodes}</svg></div>{_notes(note)}"
    )


def _in_one_layer(edge: Edge, nodes: Sequence[Node]) -> bool:
    return nodes[edge.start].layer <= nodes[edge.end].layer


def _node(node: Node, x: int, y: int) -> str:
    kind = ' class="culprit"' if node.is_culprit else ""
    name, short = ranks_in_brief(node.ranks, longest=400), ranks_in_brief(node.ranks, longest=26)
    text = harmless("culprit" if node.is_culprit else node.text)
    return (
        f"<g{kind}><title>{escape(name)}</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>'
        f'<text x="{x + 9}" y="{y + 18}">{escape(short)}</text>'
        f'<text class="dim" x="{x + 9}" y="{y + 35}">{escape(text[:28])}</text></g>\n'
    )


def _edges(graph: Graph, at: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    """Each with its label beside the one that waits; of a node's many labels the first are written."""
    written: Counter[int] = Counter()
    for edge in graph.edges:
        (x1, y1), (x2, y2) = at[edge.start], at[edge.end]
        start, end = (x1, y1 + _HEIGHT // 2), (x2 + _WIDTH, y2 + _HEIGHT // 2)
        if _in_one_layer(edge, graph.nodes):
            yield _bent(edge, start, (x2, end[1]))
            continue
        half = (start[0] + end[0]) // 2
        path = f"M{start[0]} {start[1]} C{half} {start[1]} {half} {end[1]} {end[0] + 2} {end[1]}"
        yield f'<path d="{path}" marker-end="url(#tip)"/>\n'
        if written[edge.start] < _LABELS:
            yield _label(edge.label, start[0] - 6, start[1] - 5 + 18 * written[edge.start])
        written[edge.start] += 1


def _bent(edge: Edge, start: tuple[int, int], end: tuple[int, int]) -> str:
    """Within a layer, as only a circle has it: a bow on the left, the wider the farther it leads."""
    out = start[0] - 30 - abs(end[1] - start[1]) // 3
    path = f"M{start[0]} {start[1] + 6} C{out} {start[1]} {out} {end[1]} {end[0] - 2} {end[1] - 6}"
    label = _label(edge.label, (start[0] + 3 * out) // 4 - 4, (start[1] + end[1]) // 2 + 4)
    return f'<path class="circle" d="{path}" marker-end="url(#tip)"/>\n{label}'


def _label(label: str, x: int, y: int) -> str:
    whole = harmless(label)
    short = whole if len(whole) <= _LETTERS else f"{whole[: _LETTERS - 1]}…"
    title = f"<title>{escape(whole[:400])}</title>"
    return f'<text class="dim label" x="{x}" y="{y}">{title}{escape(short)}</text>\n'


def _text(text: str) -> str:
    return escape(harmless(text))
