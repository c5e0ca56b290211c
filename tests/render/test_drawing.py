"""Tables, lanes and the graph of waits on a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.answer import Finding, HangAnswer
from train_ledger.render import Picture, as_html
from train_ledger.render.drawing import lanes_html, table_html
from train_ledger.render.picture import Cell, Column, Edge, Graph, Lane, Lanes, Node, Stack, Step, Table
from train_ledger.render.wait_drawing import graph_svg

ATTACK = "</title></svg><script>alert(1)</script><img src=//evil.example onerror='x'>\"&"


def picture(word: str) -> Picture:
    """Everything that can be drawn, with one word wherever a word from a dump can stand."""
    cell = Cell(word, "odd")
    table = Table(word, (Column((0,), "culprit"),), (Step(word, (cell,), here=True),), (word,))
    graph = Graph(
        (Node((5,), 0, is_culprit=True), Node((4,), 1, text=word), Node((0, 1), 2, text=word)),
        (Edge(1, 0, word), Edge(2, 1, word), Edge(0, 2, word)),
        left_out=3,
    )
    lanes = Lanes((Lane((5,), (cell, None), is_culprit=True),), 0, (word,))
    return Picture(((table,),), graph, lanes, (Stack((5,), word, (word,), is_odd=True),))


def page(word: str) -> str:
    """A page with all of it."""
    answer = HangAnswer("hang", (5,), findings=(Finding("missing_ranks", (5,), None, 1, word),))
    return as_html(answer, picture=picture(word))


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))


def test_nothing_of_a_dump_becomes_a_tag() -> None:
    attacked, tame = _Tags(page(ATTACK)), _Tags(page("x"))
    assert attacked.tags == tame.tags
    assert attacked.open == []


@given(st.text())
def test_no_text_changes_the_shape_of_the_page(text: str) -> None:
    assert _Tags(page("x" + text)).tags == _Tags(page("x")).tags


def test_nothing_is_loaded() -> None:
    found = page("x")
    assert not re.search(r"https?://|@import|<link|<img|xlink|href", found)
    assert re.findall(r"url\((.)", found) == ["#"] * found.count("url("), "marks of the graph alone"


def test_the_row_and_column_of_the_first_difference_are_marked() -> None:
    found = table_html(picture("x").tables[0][0])
    assert '<th scope="col" class="culprit">rank 0 (culprit)</th>' in found
    assert '<tr class="here"><th scope="row">▶ x</th><td class="odd">x</td></tr>' in found


def test_who_waits_stands_to_the_right_and_the_way_back_is_a_circle() -> None:
    graph = picture("tp, number 3").graph
    assert graph is not None
    svg = graph_svg(graph)
    lefts = [int(x) for x in re.findall(r'<rect x="(\d+)"', svg)]
    assert lefts == sorted(lefts)
    assert len(set(lefts)) == 3
    assert svg.count('class="circle"') == 1
    assert "3 more ranks are not drawn" in svg


def test_what_leads_outwards_runs_below_all_nodes_and_no_label_lies_on_one() -> None:
    nodes = (Node((5,), 0, is_culprit=True), Node((4,), 1), Node((3,), 1), Node((2,), 2))
    edges = (Edge(1, 0, "a"), Edge(2, 0, "b"), Edge(3, 1, "c"), Edge(0, 3, "d"), Edge(0, 1, "e"))
    svg = graph_svg(Graph(nodes, edges))
    boxes = [(int(x), int(y)) for x, y in re.findall(r'<rect x="(\d+)" y="(\d+)"', svg)]
    labels = {text: (int(x), int(y)) for x, y, text in re.findall(_LABEL, svg)}
    assert labels.keys() == set("abcde")
    assert not [
        (text, box)
        for text, (x, y) in labels.items()
        for box in boxes
        if box[0] < x < box[0] + 200 and box[1] < y < box[1] + 44
    ]
    lowest = max(y for _, y in boxes) + 44
    assert lowest < labels["d"][1] < labels["e"][1] < int(re.findall(r'height="(\d+)" role', svg)[0])
    assert svg.rindex("<path class=") < svg.rindex("<rect") < svg.index('<text class="dim label"')


def test_a_label_stands_where_its_edge_does_not_lead() -> None:
    nodes = (Node((0,), 0, is_culprit=True), Node((1,), 1), Node((2,), 1))
    svg = graph_svg(Graph(nodes, (Edge(1, 0, "a"), Edge(2, 0, "b"), Edge(2, 0, "c"), Edge(2, 0, "d"))))
    heights = {text: int(y) for _, y, text in re.findall(_LABEL, svg)}
    from_y = {text: 12 + 22 + 62 * row for text, row in (("a", 0), ("b", 1), ("c", 1))}
    assert heights["a"] < from_y["a"], "straight on: above"
    assert heights["b"] > from_y["b"], "it rises: below"
    assert heights["c"] < from_y["c"], "what is left"
    assert "d" not in heights


def test_of_two_that_wait_for_each_other_both_labels_are_seen() -> None:
    nodes = (Node((0,), 0, is_culprit=True), Node((1,), 0, is_culprit=True))
    svg = graph_svg(Graph(nodes, (Edge(0, 1, "a"), Edge(1, 0, "b"))))
    there, back = (int(y) for _, y, _ in re.findall(_LABEL, svg))
    assert abs(there - back) >= 14


_LABEL = r'<text class="dim label" x="(\d+)" y="(\d+)"><title>\w</title>(\w)</text>'


def test_groups_that_wait_for_nobody_known_are_told_and_not_drawn() -> None:
    alone = (Node(tuple(range(8)), 0, text="in all_reduce"), Node((8,), 1, text="in all_gather"))
    told = graph_svg(Graph(alone, ()))
    assert "<svg" not in told
    assert "ranks 0-7 wait in all_reduce for nobody that is known</p>" in told
    assert "rank 8 waits in all_gather for nobody that is known</p>" in told
    among_others = graph_svg(
        Graph((Node((9,), 0, is_culprit=True), Node((10,), 1), *alone), (Edge(1, 0, "tp"),))
    )
    assert among_others.count("<rect") == 2 * 2  # for a wide screen, and for a narrow one
    assert "for nobody that is known" in among_others
    assert "ranks 0-7: no wait of theirs is drawn" in graph_svg(Graph(alone, (), left_out=5))


def test_a_lane_without_an_operation_has_an_empty_place() -> None:
    lanes = picture("x").lanes
    assert lanes is not None
    assert '<td class="odd">x</td><td class="none"></td>' in lanes_html(lanes)


def test_stacks_are_shown_with_whose_they_are() -> None:
    found = page("train.py:7 read")
    assert "rank 5, apart from the others: train.py:7 read</p>\n<pre>train.py:7 read</pre>" in found
