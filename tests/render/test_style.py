"""What is written on a page can be read, in the light, in the dark and on paper."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from train_ledger.render.style import STYLE

_PAGE = files("train_ledger.dash.page").joinpath("static", "page.css").read_text("utf-8")
_LEAST = 4.5
_INKS, _GROUNDS = ("ink", "dim", "trouble", "unsure", "fine", "accent"), ("paper", "card", "well")


@pytest.mark.parametrize(("sheet", "schemes"), [(STYLE, 3), (_PAGE, 2)], ids=["reports", "page"])
def test_every_colour_of_words_stands_out_from_every_ground(sheet: str, schemes: int) -> None:
    roots = [
        dict(re.findall(r"--(\w+): (#\w+)", it)) for it in re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)
    ]
    assert len(roots) == schemes
    for colours in roots:
        told = {
            (ink, ground): contrast(colours[ink], colours[ground])
            for ink in _INKS
            for ground in _GROUNDS
            if ground in colours
        }
        assert {pair: ratio for pair, ratio in told.items() if ratio < _LEAST} == {}
        assert contrast(colours["trouble"], colours["paper"]) >= _LEAST, "the chip of a page, turned round"


def contrast(one: str, other: str) -> float:
    """As WCAG reckons it: 1 for the same colour, 21 for black on white."""
    dark, light = sorted((_shine(one), _shine(other)))
    return (light + 0.05) / (dark + 0.05)


def _shine(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * it for it in colour[1:])
    shares = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
