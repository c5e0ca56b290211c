"""How is it drawn what time was spent on, from left to right?

A strip of equal slices; each shows what most of its time went into. A terminal gets a letter a slice, a page
a bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from train_ledger.render.bars import key_html, part_html
from train_ledger.render.harmless import harmless

__all__ = ["Strip", "sliced", "strip_html", "strip_lines"]

_COLUMNS = 64
_WIDTH = 1000


@dataclass(frozen=True, slots=True)
class Strip:
    """Slices in the order of time, each the place of its kind in `kinds`; `letters` has one for each kind."""

    slices: tuple[int, ...]
    kinds: tuple[str, ...]
    letters: str
    left: str = ""
    right: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(map(harmless, self.kinds)))
        object.__setattr__(self, "left", harmless(self.left))
        object.__setattr__(self, "right", harmless(self.right))


def sliced(spans: Sequence[tuple[int, float, float]], count: int = _WIDTH // 2) -> tuple[int, ...]:
    """The kind that takes most of each of `count` slices of adjoining spans (kind, since, until).

    >>> sliced([(0, 0.0, 7.0), (1, 7.0, 10.0)], 5)
    (0, 0, 0, 0, 1)
    """
    if not spans or spans[-1][2] <= spans[0][1]:
        return ()
    start, whole = spans[0][1], spans[-1][2] - spans[0][1]
    shares: list[dict[int, float]] = [{} for _ in range(count)]
    for kind, since, until in spans:
        low, high = (since - start) / whole * count, (until - start) / whole * count
        for place in range(int(low), min(count, int(high) + 1)):
            part = min(high, place + 1) - max(low, place)
            if part > 0:
                shares[place][kind] = shares[place].get(kind, 0.0) + part
    return tuple(max(it, key=lambda kind: it[kind]) if it else 0 for it in shares)


def strip_lines(strip: Strip) -> list[str]:
    """A line of letters, and what they stand for."""
    step = max(1, len(strip.slices) // _COLUMNS)
    letters = [_most(strip.slices[at : at + step]) for at in range(0, len(strip.slices), step)][:_COLUMNS]
    shown = sorted(set(letters))
    key = "  ".join(f"{strip.letters[kind]} {strip.kinds[kind]}" for kind in shown)
    return ["".join(strip.letters[kind] for kind in letters), key]


def _most(slices: Sequence[int]) -> int:
    return max(slices, key=slices.count)


def strip_html(strip: Strip) -> str:
    """A bar, from when to when, and its key."""
    each = 100 / max(1, len(strip.slices))
    bars, at = [], 0
    for kind, run in groupby(strip.slices):
        count = sum(1 for _ in run)
        bars.append(part_html(kind, strip.letters[kind], at * each, count * each, height=30))
        at += count
    key = key_html([(kind, strip.letters[kind], strip.kinds[kind]) for kind in sorted(set(strip.slices))])
    return (
        "<figure>\n<figcaption>in the order of time</figcaption>\n"
        f'<svg class="strip" role="img"><title>what the time was spent on</title>{"".join(bars)}</svg>\n'
        f'<p class="why">{escape(strip.left)} – {escape(strip.right)}</p>\n{key}</figure>'
    )
