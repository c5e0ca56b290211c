"""How is it drawn how something went, step by step?

A few lines over one axis, a band for those that are many, and a mark where it changed. The picture stretches
to the width there is, its words do not. What lies far above all else is cut off at the top and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from train_ledger.render.harmless import harmless

__all__ = ["Band", "Curve", "Line", "Look", "curve_html"]

Look: TypeAlias = Literal["plain", "culprit", "second", "third", "peers"]

_TOP, _BOTTOM, _HEIGHT = 22, 18, 220
_ACROSS = 1000
_BEYOND = 1.6
_HIGH = 0.98
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class Line:
    """Values in the order of the curve's places; what is not told is nan, and leaves a gap."""

    name: str
    values: tuple[float, ...]
    look: Look = "plain"


@dataclass(frozen=True, slots=True)
class Band:
    """The least and the largest of many, in the order of the curve's places."""

    name: str
    least: tuple[float, ...]
    largest: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Lines over `places` (steps, ascending) from 0 up, in `unit`; `mark` is a place that stands out."""

    title: str
    places: tuple[int, ...]
    lines: tuple[Line, ...]
    unit: str = "s"
    band: Band | None = None
    mark: int | None = None
    mark_text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", harmless(self.title))
        object.__setattr__(self, "mark_text", harmless(self.mark_text))


def curve_html(curve: Curve) -> str:
    """The picture under its title, and what its lines mean; "" where there is nothing to draw."""
    told = [value for line in curve.lines for value in line.values if math.isfinite(value)]
    if not told or len(curve.places) < 2:
        return ""
    top = _top(told + ([it for it in curve.band.largest if math.isfinite(it)] if curve.band else []))
    beyond = [value for line in curve.lines for value in line.values if value > top]
    note = (
        f'\n<p class="why">{len(beyond)} cut off at the top, the longest {_figure(max(beyond))} '
        f"{escape(curve.unit)}</p>"
        if beyond
        else ""
    )
    return (
        f"<figure>\n<figcaption>{escape(curve.title)}</figcaption>\n"
        f'<svg class="curve" role="img"><title>{escape(curve.title)}{_mark_told(curve)}</title>\n'
        f"{''.join(_rules(top))}\n"
        f'<svg y="{_TOP}" width="100%" height="{_HEIGHT - _TOP - _BOTTOM}" viewBox="0 0 {_ACROSS} 100" '
        f'preserveAspectRatio="none">{"".join(_paths(curve, top))}</svg>\n'
        f"{''.join(_figures(curve, top))}{_mark(curve)}</svg>\n"
        f"{_key(curve)}{note}</figure>"
    )


def _top(told: Sequence[float]) -> float:
    """A little above the largest; above most, where single ones are far beyond."""
    ordered = sorted(told)
    high = ordered[min(len(ordered) - 1, int(_HIGH * len(ordered)))]
    top = ordered[-1] if ordered[-1] <= _BEYOND * high else 1.25 * high
    return 1.08 * top if top > _NOTHING else 1.0


def _rules(top: float) -> Iterator[str]:
    for value in _round_values(top):
        y = _height_of(value, top)
        yield f'<line x1="0" x2="100%" y1="{y:.0f}" y2="{y:.0f}"/>'


def _figures(curve: Curve, top: float) -> Iterator[str]:
    """Upon the curves, which would cross them out."""
    for value in _round_values(top)[1:]:
        y = _height_of(value, top) - 4
        yield f'<text x="2" y="{y:.0f}">{_figure(value)} {escape(curve.unit)}</text>'
    yield f'<text x="0" y="{_HEIGHT - 3}">step {curve.places[0]:,}</text>'
    yield f'<text x="100%" y="{_HEIGHT - 3}" text-anchor="end">step {curve.places[-1]:,}</text>\n'


def _height_of(value: float, top: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value / top)


def _round_values(top: float) -> list[float]:
    """From 0 up to `top` two to four round values, at which lines are drawn.

    >>> _round_values(1.4), _round_values(43.0)
    ([0.0, 0.5, 1.0], [0.0, 20.0, 40.0])
    """
    power = 10.0 ** math.floor(math.log10(top))
    each = next(power * it for it in (0.2, 0.5, 1.0, 2.0, 5.0) if top / (power * it) < 4)
    return [each * number for number in range(int(top / each) + 1)]


def _figure(value: float) -> str:
    return f"{value:.3g}" if value < 1e5 else f"{value:,.0f}"


def _share(curve: Curve, place: int) -> float:
    first, last = curve.places[0], curve.places[-1]
    return (place - first) / (last - first)


def _paths(curve: Curve, top: float) -> Iterator[str]:
    at = [_ACROSS * _share(curve, place) for place in curve.places]
    if curve.band:
        yield f'<path class="c-band" d="{_band(curve.band, at, top)}"/>'
    for line in curve.lines:
        yield f'<path class="c-{line.look}" d="{_path(zip(at, line.values, strict=True), top)}"/>'


def _path(points: Iterable[tuple[float, float]], top: float) -> str:
    drawn, is_open = [], False
    for x, value in points:
        if math.isfinite(value):
            drawn.append(f"{'L' if is_open else 'M'}{x:.1f} {_y(value, top):.1f}")
        is_open = math.isfinite(value)
    return "".join(drawn)


def _band(band: Band, at: Sequence[float], top: float) -> str:
    told = [
        (x, least, largest)
        for x, least, largest in zip(at, band.least, band.largest, strict=True)
        if math.isfinite(least) and math.isfinite(largest)
    ]
    there = [f"{x:.1f} {_y(largest, top):.1f}" for x, _, largest in told]
    back = [f"{x:.1f} {_y(least, top):.1f}" for x, least, _ in reversed(told)]
    return f"M{'L'.join((*there, *back))}Z" if told else ""


def _y(value: float, top: float) -> float:
    return 100 * (1 - min(1.0, max(0.0, value / top)))


def _mark(curve: Curve) -> str:
    if curve.mark is None or not curve.places[0] <= curve.mark <= curve.places[-1]:
        return ""
    share = _share(curve, curve.mark)
    anchor, dx = ("start", 5) if share < 0.5 else ("end", -5)
    x, text = f"{100 * share:.2f}%", escape(curve.mark_text)
    return (
        f'<line class="mark" x1="{x}" x2="{x}" y1="2" y2="{_HEIGHT - _BOTTOM}"/>'
        f'<text class="mark" x="{x}" dx="{dx}" y="13" text-anchor="{anchor}">{text}</text>\n'
    )


def _mark_told(curve: Curve) -> str:
    return f"; {escape(curve.mark_text)}" if curve.mark is not None and curve.mark_text else ""


def _key(curve: Curve) -> str:
    told = [_sample(f'<path class="c-{line.look}" d="M0 5H26"/>', line.name) for line in curve.lines]
    if curve.band:
        told.append(_sample('<rect class="c-band" width="26" height="10"/>', curve.band.name))
    return f'<p class="key">{"".join(told)}</p>'


def _sample(drawn: str, name: str) -> str:
    return (
        f'<span><svg width="26" height="10" aria-hidden="true">{drawn}</svg>{escape(harmless(name))}</span>'
    )
