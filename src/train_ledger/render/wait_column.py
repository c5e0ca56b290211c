"""How is it drawn who waits for whom where there is no room to the side, as on a phone?

As SVG: the root above, who waits for it below, each layer a row. A circle has no root and is drawn to the
side alone. No coordinate comes from a log, and every word is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from train_ledger.render.picture import Edge, Graph, Node
from train_ledger.render.wait_marks import HEIGHT, label_svg, node_svg

__all__ = ["column_svg"]

_WIDTH, _BESIDE, _BETWEEN, _EDGE = 168, 12, 52, 6
_MOST_BESIDE = 2
"""Nodes of a layer for which a phone has room."""
_NAME, _LABEL = 22, 26
_LABEL_HEIGHT = 14

_Corners = Mapping[int, tuple[int, int]]


def column_svg(graph: Graph, shown: Sequence[int]) -> str:
    """The nodes at these places and their edges; "" where it does not fit, or somebody waits in a circle."""
    layers = [list(them) for _, them in groupby(shown, key=lambda it: graph.nodes[it].layer)]
    nodes = graph.nodes
    has_root = all(nodes[it.start].layer > nodes[it.end].layer for it in graph.edges)
    if not has_root or max(map(len, layers), default=0) > _MOST_BESIDE:
        return ""
    at = {
        place: (_EDGE + column * (_WIDTH + _BESIDE), _EDGE + row * (HEIGHT + _BETWEEN))
        for row, them in enumerate(layers)
        for column, place in enumerate(them)
    }
    width = 2 * _EDGE + _MOST_BESIDE * (_WIDTH + _BESIDE) - _BESIDE
    height = 2 * _EDGE + len(layers) * (HEIGHT + _BETWEEN) - _BETWEEN
    drawn = [*_edges(graph.edges, at)]
    return (
        f'<svg class="graph column" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img">\n<title>who waits for whom</title>\n<defs><marker id="tip-up" viewBox="0 0 8 8" '
        'refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker>'
        "</defs>\n"
        f"{''.join(path for path, _ in drawn)}{''.join(_node(nodes[it], at[it]) for it in shown)}"
        f"{''.join(label for _, label in drawn)}</svg>"
    )


def _edges(edges: Sequence[Edge], at: _Corners) -> Iterator[tuple[str, str]]:
    """Upwards, each with its label above the one that waits; of a node's many the first two are written."""
    written: dict[int, int] = {}
    for edge in edges:
        (x1, y1), (x2, y2) = at[edge.start], at[edge.end]
        from_x, to_x = x1 + _WIDTH // 2, x2 + _WIDTH // 2
        bottom = y2 + HEIGHT
        half = (y1 + bottom) // 2
        path = f"M{from_x} {y1} C{from_x} {half} {to_x} {half} {to_x} {bottom + 2}"
        line = written[edge.start] = written.get(edge.start, 0) + 1
        label = _label(edge.label, x1 + 3, y1 - _EDGE - (2 - line) * _LABEL_HEIGHT) if line <= 2 else ""
        yield f'<path d="{path}" marker-end="url(#tip-up)"/>\n', label


def _label(label: str, x: int, y: int) -> str:
    return label_svg(label, x, y, longest=_LABEL, kind="dim label above")


def _node(node: Node, corner: tuple[int, int]) -> str:
    return node_svg(node, *corner, width=_WIDTH, name=_NAME, text=_NAME)
