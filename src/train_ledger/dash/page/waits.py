"""Who came to which collective, and who waits for whom?

The tables first, then the drawing of the same: by render, as in the report, so that who knows one knows the
other. Ranks that did the same share a column and a node, of a thousand as of eight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train_ledger.answer import Finding, HangAnswer, SlowAnswer
from train_ledger.dash.page.markup import Child, Safe, drawn, element, join, table
from train_ledger.dash.page.slow_step import slow_step
from train_ledger.dash.page.view import PageView
from train_ledger.render import Picture, ranks_in_brief
from train_ledger.render.picture import Graph, Node

__all__ = ["waits_part"]

_MOST_ROWS = 16
_LONGEST = 60
_HEADING = "who waits for whom"
_NOBODY = "nobody that is known"


def waits_part(view: PageView) -> Safe:
    """What is drawn of the open incident's verdict; nothing while there is none, or where nothing waits."""
    diagnosis = view.current_diagnosis
    details = diagnosis.details if diagnosis else None
    if isinstance(details, SlowAnswer):
        return slow_step(details)
    if diagnosis is None or (details is None and not diagnosis.cause.startswith("hang.")):
        return join([])
    picture = view.picture or Picture()
    told = [*_collectives(picture), *_waits(picture, details), *_lanes(picture)]
    if told:
        return join(told)
    none = "Nothing to draw: the verdict rests on no Flight Recorder dump."
    if details is not None:
        none = "No drawing of it was kept, and by what was found nobody waits in a collective."
    return join((element("h2", _HEADING), element("p", none, class_="dim")))


def _collectives(picture: Picture) -> Iterator[Safe]:
    shown = [it for tables in picture.tables for it in tables]
    if shown:
        yield element("h2", "who came to which collective")
        yield from (drawn(it, "who came to which collective") for it in shown)


def _waits(picture: Picture, details: HangAnswer | None) -> Iterator[Safe]:
    """By the graph; where none was kept, by the findings, without a drawing."""
    if picture.graph is not None and picture.graph.nodes:
        yield element("h2", _HEADING)
        yield _table(_of_graph(picture.graph), "the drawing")
        if picture.graph.edges:
            yield drawn(picture.graph, "drawing of who waits for whom")
        return
    findings = [it for it in (details.findings if details else ()) if it.waiting]
    if findings:
        yield element("h2", _HEADING)
        yield _table(map(_of_finding, findings), "the state as JSON")
        yield element("p", "No drawing of it was kept.", class_="dim")


def _lanes(picture: Picture) -> Iterator[Safe]:
    if picture.lanes is not None and picture.lanes.lanes:
        heading = "what each rank issued last, in its own order"
        yield element("details", element("summary", heading), drawn(picture.lanes, heading), data_key="lanes")


def _table(rows: Iterable[tuple[Child, Child, Child]], where: str) -> Safe:
    """The first rows, and `where` the others are."""
    told = list(rows)
    cells = (element("tr", *(element("td", cell) for cell in row)) for row in told[:_MOST_ROWS])
    shown = table(("waits", "for", "in"), cells, _HEADING)
    rest = len(told) - _MOST_ROWS
    more = element("p", f"and {rest} more, in {where}", class_="dim") if rest > 0 else None
    return join((shown, more))


def _of_graph(graph: Graph) -> Iterator[tuple[Child, Child, Child]]:
    for edge in graph.edges:
        start, end = graph.nodes[edge.start], graph.nodes[edge.end]
        op = start.text.removeprefix("in ")
        yield _node(start), _node(end), f"{op}, {edge.label}" if op else edge.label
    for node in (graph.nodes[place] for place in graph.alone):
        if node.text and not node.is_culprit and not graph.left_out:
            yield _node(node), _NOBODY, node.text.removeprefix("in ")


def _node(node: Node) -> Child:
    ranks = ranks_in_brief(node.ranks, longest=_LONGEST)
    mark = element("span", "culprit", class_="chip culprit")
    return join((ranks, " ", mark)) if node.is_culprit else ranks


def _of_finding(finding: Finding) -> tuple[Child, Child, Child]:
    whom = ranks_in_brief(finding.culprits, longest=_LONGEST) if finding.culprits else _NOBODY
    number = "" if finding.seq is None else f", number {finding.seq}"
    group = "" if finding.group is None else f" of {finding.group.desc or finding.group.name}"
    return ranks_in_brief(finding.waiting, longest=_LONGEST), whom, f"{finding.op or '?'}{number}{group}"
