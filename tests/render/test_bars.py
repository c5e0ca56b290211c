"""Of what something consists, as bars."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.render.bars import Bar, Bars, bars_html

KINDS = ("compute", "waiting", "other")


def _bars(*bars: Bar) -> Bars:
    return Bars("a step", KINDS, "CWO", bars)


def _widths(html: str) -> list[float]:
    return [float(width) for width in re.findall(r'width="([\d.]+)%"', html)]


def test_the_longest_bar_is_as_wide_as_there_is_room_and_the_others_are_of_its_scale() -> None:
    html = bars_html(_bars(Bar("rank 0", (6.0, 2.0, 0.0)), Bar("rank 1", (3.0, 1.0, 0.0))))
    assert _widths(html) == [75.0, 25.0, 37.5, 12.5]


def test_a_part_has_its_letter_where_it_has_room() -> None:
    html = bars_html(_bars(Bar("rank 0", (98.0, 2.0, 0.0))))
    assert re.findall(r"<text[^>]*>(\w)</text>", html) == ["C"]


def test_the_key_names_what_is_drawn_and_nothing_else() -> None:
    html = bars_html(_bars(Bar("rank 0", (98.0, 2.0, 0.0))))
    assert "C compute" in html
    assert "W waiting" in html
    assert "O other" not in html


def test_a_reader_that_sees_no_picture_is_told_the_shares() -> None:
    html = bars_html(_bars(Bar("rank 0", (3.0, 1.0, 0.0), "4 ms", is_culprit=True)))
    assert "<title>rank 0: compute 75 %, waiting 25 %</title>" in html
    assert '<div class="bar culprit">' in html


def test_bars_of_nothing_are_bars() -> None:
    assert _widths(bars_html(_bars(Bar("rank 0", (0.0, 0.0, 0.0))))) == []
    assert "<figure>" in bars_html(_bars())


@given(st.lists(st.tuples(*[st.floats(0, 1e15)] * 3), min_size=1, max_size=5))
def test_no_bar_is_wider_than_the_room(parts: list[tuple[float, ...]]) -> None:
    html = bars_html(_bars(*(Bar("x", it) for it in parts)))
    for picture in html.split("<svg")[1:]:
        assert sum(_widths(picture)) <= 100.1


def test_what_a_log_says_is_harmless() -> None:
    html = bars_html(Bars("<b>", ("<i>",), "<", (Bar("<u>", (1.0,), "<s>"),), ("<a>",)))
    assert not re.search("<[biusa]>", html)
