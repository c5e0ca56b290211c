"""How do the states of a run, and the moves between them, look as a drawing that needs no program?"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping

from train_ledger.ledger.transitions import Move

__all__ = ["drawing"]

_PLACES: Mapping[str, tuple[int, int]] = {
    "starting": (110, 50),
    "running": (500, 50),
    "finished": (880, 50),
    "numeric_fault": (110, 230),
    "hardware_fault": (330, 230),
    "stalled": (725, 230),
    "recovering": (905, 230),
    "restarting": (500, 430),
    "escalated": (830, 520),
    "stopped": (500, 640),
}
"""The middle of each state's box."""
_WIDTH, _HEIGHT = 1000, 690
_HALF_WIDTH, _HALF_HEIGHT = 72, 20
_BEND = 0.07
"""How far a line bends to its right, by its length: so that two that go both ways lie apart."""
_STROKES = {
    "automatic": 'stroke-width="1.2"',
    "page": 'stroke-width="3"',
    "person": 'stroke-width="1.6" stroke-dasharray="2 5"',
}
_COLOURS = {
    ("#dcfce7", "#15803d"): ("starting", "running", "finished"),
    ("#fee2e2", "#b91c1c"): ("stalled", "numeric_fault", "hardware_fault", "stopped"),
    ("#dbeafe", "#1d4ed8"): ("restarting", "recovering"),
    ("#fef3c7", "#b45309"): ("escalated",),
}
_HEAD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"
 font-family="sans-serif" font-size="15" text-anchor="middle">
<title>The states of a run and the moves between them; the tables beside it say the same.</title>
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11" markerHeight="11"
 markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 10 5 0 10z" fill="#64748b"/></marker></defs>
"""


def drawing(moves: Iterable[Move]) -> str:
    """An SVG of every move that is drawn, by the number of its line in the table."""
    lines = [
        _line(number, move.kind, before, move.after)
        for number, move in enumerate(moves, 1)
        for before in move.drawn
    ]
    boxes = [_box(state, *colours) for colours, states in _COLOURS.items() for state in states]
    strokes, numbers = zip(*lines, strict=True)
    return _HEAD + "\n".join((*strokes, *numbers, *boxes)) + "\n</svg>\n"


def _line(number: int, kind: str, before: str, after: str) -> tuple[str, str]:
    """The bent line of a move, and its number on the middle of it."""
    (x1, y1), (x2, y2) = _PLACES[before], _PLACES[after]
    mid_x, mid_y = (x1 + x2) / 2 - _BEND * (y2 - y1), (y1 + y2) / 2 + _BEND * (x2 - x1)
    points = (*_edge(x1, y1, mid_x, mid_y), mid_x, mid_y, *_edge(x2, y2, mid_x, mid_y))
    path = "M{:.0f} {:.0f}Q{:.0f} {:.0f} {:.0f} {:.0f}".format(*points)
    stroke = f'<path d="{path}" fill="none" stroke="#64748b" {_STROKES[kind]} marker-end="url(#tip)"/>'
    x, y = (points[0] + 2 * mid_x + points[4]) / 4, (points[1] + 2 * mid_y + points[5]) / 4
    return stroke, "".join(_number(number, x, y))


def _edge(x: float, y: float, to_x: float, to_y: float) -> tuple[float, float]:
    """Where a line from the middle of a box to somewhere leaves the box, and a little beyond."""
    dx, dy = to_x - x, to_y - y
    share = min(_HALF_WIDTH / abs(dx) if dx else math.inf, _HALF_HEIGHT / abs(dy) if dy else math.inf)
    beyond = 3 / math.hypot(dx, dy)
    return x + (share + beyond) * dx, y + (share + beyond) * dy


def _number(number: int, x: float, y: float) -> Iterator[str]:
    yield f'<circle cx="{x:.0f}" cy="{y:.0f}" r="10" fill="#fff" stroke="#cbd5e1"/>'
    yield f'<text x="{x:.0f}" y="{y + 4:.0f}" font-size="12" fill="#0f172a">{number}</text>'


def _box(state: str, fill: str, stroke: str) -> str:
    x, y = _PLACES[state]
    at = f'x="{x - _HALF_WIDTH}" y="{y - _HALF_HEIGHT}" width="{2 * _HALF_WIDTH}" height="{2 * _HALF_HEIGHT}"'
    return (
        f'<rect {at} rx="8" fill="{fill}" stroke="{stroke}"/>'
        f'<text x="{x}" y="{y + 5}" fill="#0f172a">{html.escape(state)}</text>'
    )
