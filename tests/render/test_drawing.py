"""Tables, lanes and the graph of waits on a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.answer import Finding, HangAnswer
from train_ledger.render import Picture, as_html
from train_ledger.render.drawing import graph_svg, lanes_html, table_html
from train_ledger.render.picture import Cell, Column, Edge, Graph, Lane, Lanes, Node, Stack, Step, Table

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


def test_a_lane_without_an_operation_has_an_empty_place() -> None:
    lanes = picture("x").lanes
    assert lanes is not None
    assert '<td class="odd">x</td><td class="none"></td>' in lanes_html(lanes)


def test_stacks_are_shown_with_whose_they_are() -> None:
    found = page("train.py:7 read")
    assert "rank 5, apart from the others: train.py:7 read</p>\n<pre>train.py:7 read</pre>" in found
