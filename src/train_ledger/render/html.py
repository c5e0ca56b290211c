"""How does an answer look as one file that can be sent to a colleague?

It opens from the disk, in the reader's light or dark setting, on a phone and on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from train_ledger.answer import Diagnosis, HangAnswer, NextCommand
from train_ledger.render.bars import Bars, bars_html
from train_ledger.render.curve import Curve, curve_html
from train_ledger.render.drawing import lanes_html, table_html
from train_ledger.render.figures import Figures, figures_html
from train_ledger.render.frame import Made, framed
from train_ledger.render.layout import report_of
from train_ledger.render.picture import Graph, Lanes, Picture, Table
from train_ledger.render.report import Frames, Pair, Point, Report, Row, Section
from train_ledger.render.strip import Strip, strip_html
from train_ledger.render.wait_drawing import graph_svg

__all__ = ["as_html"]


def as_html(
    answer: HangAnswer | Diagnosis | Report,
    *,
    title: str = "",
    currency: str = "",
    picture: Picture | None = None,
    made: Made | None = None,
) -> str:
    """The answer as a whole page; `title` says what it is about, the run or the dumps, `made` how it came."""
    report = report_of(answer, currency=currency, picture=picture, drawn=True)
    body = "\n".join(_section(section) for section in report.sections)
    return framed(report.verdict, report.tone, body, title=title, made=made)


def _section(section: Section) -> str:
    heading = f"<h2>{escape(section.heading)}</h2>\n" if section.heading else ""
    return f"<section>\n{heading}{_rows(section.rows)}\n</section>"


def _rows(rows: Sequence[Row]) -> str:
    """Pairs that follow each other make one list, and so do points."""
    told = (_run(kind, run) for kind, run in groupby(rows, key=type))
    return "\n".join(part for part in told if part)


def _run(kind: type, rows: Iterable[Row]) -> str:
    body = "\n".join(_HTML[kind](row) for row in rows)
    return f"<{_LISTS[kind]}>\n{body}\n</{_LISTS[kind]}>" if kind in _LISTS else body


def _pair(row: Pair) -> str:
    return f"<dt>{escape(row.label)}</dt><dd>{escape(row.text)}</dd>"


def _point(row: Point) -> str:
    return f"<li>{escape(row.text)}</li>"


def _frames(row: Frames) -> str:
    title = f'<p class="why">{escape(row.title)}</p>\n' if row.title else ""
    return f"{title}<pre>{escape(chr(10).join(row.lines))}</pre>"


def _command(row: NextCommand) -> str:
    return f'<p class="why">{escape(row.why)}</p>\n<pre class="command">{escape(row.command)}</pre>'


_HTML: Mapping[type, Callable[[Any], str]] = {
    Pair: _pair,
    Point: _point,
    Frames: _frames,
    Figures: figures_html,
    NextCommand: _command,
    Table: table_html,
    Lanes: lanes_html,
    Graph: graph_svg,
    Strip: strip_html,
    Bars: bars_html,
    Curve: curve_html,
}
_LISTS: Mapping[type, str] = {Pair: "dl", Point: "ul"}
