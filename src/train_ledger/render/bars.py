"""How is it drawn of what something consists, one bar beside another?

Bars of one scale: the longest is as wide as there is room. Each part has a colour and, where there is room, a
letter; the key names them once. Widths are percentages, so that letters keep their size on every screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from train_ledger.render.harmless import harmless
from train_ledger.render.style import DARK_KINDS, KINDS

__all__ = ["Bar", "Bars", "bars_html", "key_html", "part_html"]

_ROOM_FOR_LETTER = 3.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its parts in the order of the kinds, and what is told behind it, as "12.3 ms"."""

    name: str
    parts: tuple[float, ...]
    told: str = ""
    is_culprit: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", harmless(self.name))
        object.__setattr__(self, "told", harmless(self.told))


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars under one title; `kinds` names their parts, `letters` has one for each."""

    title: str
    kinds: tuple[str, ...]
    letters: str
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", harmless(self.title))
        object.__setattr__(self, "kinds", tuple(map(harmless, self.kinds)))
        object.__setattr__(self, "notes", tuple(map(harmless, self.notes)))


def bars_html(drawn: Bars) -> str:
    """The bars, and what their colours mean."""
    longest = max((sum(bar.parts) for bar in drawn.bars), default=0.0)
    bars = "\n".join(_bar(bar, drawn, longest) for bar in drawn.bars)
    shown = [place for place in range(len(drawn.kinds)) if any(bar.parts[place] > 0 for bar in drawn.bars)]
    key = key_html([(place, drawn.letters[place], drawn.kinds[place]) for place in shown])
    notes = "".join(f'\n<p class="why">{escape(note)}</p>' for note in drawn.notes)
    return f"<figure>\n<figcaption>{escape(drawn.title)}</figcaption>\n{bars}\n{key}{notes}</figure>"


def _bar(bar: Bar, drawn: Bars, longest: float) -> str:
    kind = ' class="bar culprit"' if bar.is_culprit else ' class="bar"'
    title = escape(f"{bar.name}: {', '.join(_shares(bar, drawn))}")
    svg = f'<svg class="parts" role="img"><title>{title}</title>{"".join(_parts(bar, drawn, longest))}</svg>'
    return (
        f'<div{kind}><span class="name">{escape(bar.name)}</span>{svg}'
        f'<span class="told">{escape(bar.told)}</span></div>'
    )


def _shares(bar: Bar, drawn: Bars) -> Iterator[str]:
    whole = sum(bar.parts)
    for name, part in zip(drawn.kinds, bar.parts, strict=True):
        if part > 0:
            yield f"{name} {100 * part / whole:.3g} %"


def _parts(bar: Bar, drawn: Bars, longest: float) -> Iterator[str]:
    at = 0.0
    for place, part in enumerate(bar.parts):
        if part <= 0:
            continue
        width = 100 * part / longest
        yield part_html(place, drawn.letters[place], at, width, height=22)
        at += width


def part_html(place: int, letter: str, at: float, width: float, *, height: int) -> str:
    """A piece of a bar from `at` on, in percent of the whole, with its letter where it has room."""
    rect = f'<rect class="k{place % len(KINDS)}" x="{at:.2f}%" width="{width:.2f}%" height="{height}"/>'
    if width < _ROOM_FOR_LETTER:
        return rect
    on = ' class="on"' if place % len(KINDS) in DARK_KINDS else ""
    return f'{rect}<text{on} x="{at + width / 2:.2f}%" y="{height // 2 + 5}">{escape(letter)}</text>'


def key_html(kinds: list[tuple[int, str, str]]) -> str:
    """What colours and letters mean: the place of each kind, its letter, its name."""
    told = "".join(
        f'<span><span class="k{place % len(KINDS)}">■</span> {escape(letter)} {escape(name)}</span>'
        for place, letter, name in kinds
    )
    return f'<p class="key">{told}</p>'
