"""How is it drawn who waits for whom?

As SVG: the root on the left, who waits for it to the right. Nodes never lie upon an edge's label: what leads
back to the left runs between the layers, what leads outwards, as in a circle, in lanes below all nodes. No
coordinate comes from a log, and every word is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from train_ledger.render.drawing import notes_html
from train_ledger.render.picture import Edge, Graph, Node
from train_ledger.render.ranks import ranks_in_brief
from train_ledger.render.wait_column import column_svg
from train_ledger.render.wait_marks import HEIGHT, label_svg, node_svg

__all__ = ["graph_svg"]

_WIDTH, _PITCH = 200, 62
_BETWEEN = 210
"""Room between two layers, for the labels of the edges."""
_EDGE = 12
_ABOVE, _BELOW = -8, 14
"""Of an edge, where it leaves its node: where there is room for a label."""
_NAME, _LETTERS = 26, 28
_LANE, _ROUND = 24, 8
"""How high a lane is, and how round its corners."""

_Corners = Mapping[int, tuple[int, int]]
"""By a node's place its upper left corner."""


def graph_svg(graph: Graph) -> str:
    """Arrows point at the one that is waited for; on a narrow screen a drawing that fits one stands there.

    Who has no edge, as where all came and none finishes, is told below and not drawn.
    """
    alone = [place for place in graph.alone if not graph.nodes[place].is_culprit]
    shown = [place for place in range(len(graph.nodes)) if place not in alone]
    notes = [_told(graph.nodes[place], all_drawn=not graph.left_out) for place in alone]
    notes += [f"{graph.left_out} more ranks are not drawn"] if graph.left_out else []
    return (_drawn(graph, shown) if shown else "") + notes_html(notes)


def _drawn(graph: Graph, shown: Sequence[int]) -> str:
    column = column_svg(graph, shown)
    kind = "scroll beside" if column else "scroll"
    return f'<div class="{kind}">{_svg(graph, shown)}</div>' + column


def _told(node: Node, *, all_drawn: bool) -> str:
    who = ranks_in_brief(node.ranks)
    if not all_drawn or not node.text:
        return f"{who}: no wait of theirs is drawn"
    return f"{who} {'waits' if len(node.ranks) == 1 else 'wait'} {node.text} for nobody that is known"


def _svg(graph: Graph, shown: Sequence[int]) -> str:
    layers = [list(them) for _, them in groupby(shown, key=lambda it: graph.nodes[it].layer)]
    of_circle = any(_is_bow(edge, graph.nodes) for edge in graph.edges)
    left = _EDGE + (_BETWEEN if of_circle else 0)
    at = {
        place: (left + column * (_WIDTH + _BETWEEN), _EDGE + row * _PITCH)
        for column, them in enumerate(layers)
        for row, place in enumerate(them)
    }
    width = left + len(layers) * (_WIDTH + _BETWEEN) - _BETWEEN + _EDGE
    below = _EDGE + max(map(len, layers)) * _PITCH - (_PITCH - HEIGHT)
    outwards = [edge for edge in graph.edges if _leads_outwards(edge, graph.nodes)]
    height = below + _LANE * len(outwards) + _EDGE
    drawn = [*_edges(graph, at), *_lanes(outwards, at, below)]
    nodes = "".join(_node(graph.nodes[place], at[place]) for place in shown)
    return (
        f'<svg class="graph" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n<title>who waits for whom</title>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>\n'
        f"{''.join(path for path, _ in drawn)}{nodes}{''.join(label for _, label in drawn)}</svg>"
    )


def _leads_outwards(edge: Edge, nodes: Sequence[Node]) -> bool:
    return nodes[edge.start].layer < nodes[edge.end].layer


def _is_bow(edge: Edge, nodes: Sequence[Node]) -> bool:
    return nodes[edge.start].layer == nodes[edge.end].layer


def _edges(graph: Graph, at: _Corners) -> Iterator[tuple[str, str]]:
    """Each with its label beside the one that waits; of a node's many labels the first are written."""
    free = {place: [_ABOVE, _BELOW] for place in at}
    for edge in graph.edges:
        (x1, y1), (x2, y2) = at[edge.start], at[edge.end]
        start, end = (x1, y1 + HEIGHT // 2), (x2 + _WIDTH, y2 + HEIGHT // 2)
        if _leads_outwards(edge, graph.nodes):
            continue
        if _is_bow(edge, graph.nodes):
            yield _bow(edge, start, (x2, end[1]))
            continue
        half = (start[0] + end[0]) // 2
        path = f"M{start[0]} {start[1]} C{half} {start[1]} {half} {end[1]} {end[0] + 2} {end[1]}"
        label = ""
        if free[edge.start]:
            beside = _beside(free[edge.start], rises=end[1] < start[1])
            label = _label(edge.label, start[0] - 6, start[1] + beside)
        yield f'<path d="{path}" marker-end="url(#tip)"/>\n', label


def _beside(free: list[int], *, rises: bool) -> int:
    """Takes a place for a label: where the edge does not lead to, if that is free."""
    wanted = _BELOW if rises else _ABOVE
    return free.pop(free.index(wanted) if wanted in free else 0)


def _bow(edge: Edge, start: tuple[int, int], end: tuple[int, int]) -> tuple[str, str]:
    """Within a layer, as only a circle has it: on the left, the wider the farther it leads.

    Labels of the way there and of the way back stand above each other.
    """
    out = start[0] - 30 - abs(end[1] - start[1]) // 3
    path = f"M{start[0]} {start[1] + 6} C{out} {start[1]} {out} {end[1]} {end[0] - 2} {end[1] - 6}"
    label = _label(
        edge.label,
        (start[0] + 3 * out) // 4 - 4,
        (start[1] + end[1]) // 2 + (-4 if end[1] < start[1] else 12),
    )
    return f'<path class="circle" d="{path}" marker-end="url(#tip)"/>\n', label


def _lanes(outwards: Sequence[Edge], at: _Corners, below: int) -> Iterator[tuple[str, str]]:
    """From beneath one node to beneath another, farther out: what closes a circle over several layers."""
    for number, edge in enumerate(outwards):
        (x1, y1), (x2, y2) = at[edge.start], at[edge.end]
        from_x, to_x = (x + _EDGE * (2 + number % 14) for x in (x1, x2))
        lane = below + _LANE * (number + 1) - 4
        path = (
            f"M{from_x} {y1 + HEIGHT} V{lane - _ROUND} q0 {_ROUND} {_ROUND} {_ROUND} "
            f"H{to_x - _ROUND} q{_ROUND} 0 {_ROUND} -{_ROUND} V{y2 + HEIGHT + 2}"
        )
        label = _label(edge.label, to_x - 2 * _EDGE, lane - 7)
        yield f'<path class="circle" d="{path}" marker-end="url(#tip)"/>\n', label


def _label(label: str, x: int, y: int) -> str:
    return label_svg(label, x, y, longest=_LETTERS)


def _node(node: Node, corner: tuple[int, int]) -> str:
    return node_svg(node, *corner, width=_WIDTH, name=_NAME, text=_LETTERS)
