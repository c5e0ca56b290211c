"""On a phone the waits are drawn from above to below, where a phone has room for them."""

from __future__ import annotations

import re

from train_ledger.render.picture import Edge, Graph, Node
from train_ledger.render.wait_drawing import graph_svg

CULPRIT = Node((5,), 0, is_culprit=True)
PEERS, BEHIND = Node((0, 1, 2), 1, text="in all_reduce"), Node((8, 9), 2, text="in reduce_scatter")
PHONE = 362


def column_of(*nodes: Node, edges: tuple[Edge, ...]) -> str:
    html = graph_svg(Graph(nodes, edges))
    return html.partition("graph column")[2]


def test_the_root_stands_above_and_all_of_it_fits_a_phone() -> None:
    edges = (Edge(1, 0, "tp_0, number 3"), Edge(2, 1, "dp_0, number 2"))
    svg = column_of(CULPRIT, PEERS, BEHIND, edges=edges)
    width = int(re.findall(r'width="(\d+)"', svg)[0])
    assert width <= PHONE
    heights = [int(y) for y in re.findall(r'<rect x="\d+" y="(\d+)"', svg)]
    assert heights == sorted(set(heights))
    assert svg.index("rank 5") < svg.index("ranks 0-2") < svg.index("ranks 8-9")
    assert "tp_0, number 3" in svg
    assert svg.count("marker-end") == len(edges)


def test_labels_do_not_lie_upon_each_other() -> None:
    other = Node((7,), 0, is_culprit=True)
    svg = column_of(CULPRIT, other, PEERS, edges=(Edge(2, 0, "tp_0"), Edge(2, 1, "dp_0")))
    first, second = (int(y) for y in re.findall(r'label above" x="\d+" y="(\d+)"', svg))
    assert second - first >= 12


def test_what_does_not_fit_or_is_a_circle_is_drawn_to_the_side_alone() -> None:
    three = tuple(Node((rank,), 1) for rank in (1, 2, 3))
    assert not column_of(CULPRIT, *three, edges=tuple(Edge(at, 0, "g") for at in (1, 2, 3)))
    circle = (Node((0,), 0, is_culprit=True), Node((1,), 0, is_culprit=True))
    assert not column_of(*circle, edges=(Edge(0, 1, "a"), Edge(1, 0, "b")))


def test_every_word_is_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    svg = column_of(CULPRIT, Node((1,), 1, text=hostile), edges=(Edge(1, 0, hostile),))
    assert "<script" not in svg
    assert "&lt;script" in svg
