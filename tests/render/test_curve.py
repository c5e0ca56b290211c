"""How something went, step by step."""

from __future__ import annotations

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from train_ledger.render.curve import Band, Curve, Line, curve_html

PLACES = tuple(range(100, 200))
JUMP = tuple(1.0 if step < 150 else 1.5 for step in PLACES)


def test_where_it_changed_is_marked_and_said() -> None:
    html = curve_html(
        Curve("step time", PLACES, (Line("step", JUMP),), mark=150, mark_text="slower since 150")
    )
    assert '<line class="mark" x1="50.51%"' in html
    assert "<title>step time; slower since 150</title>" in html
    assert "step 100" in html
    assert "step 199" in html


def test_a_mark_that_lies_outside_is_not_drawn() -> None:
    html = curve_html(Curve("t", PLACES, (Line("step", JUMP),), mark=5000, mark_text="x"))
    assert 'class="mark"' not in html


def test_single_values_far_beyond_are_cut_off_and_counted() -> None:
    with_pause = (*JUMP[:-1], 60.0)
    html = curve_html(Curve("t", PLACES, (Line("step", with_pause),)))
    assert "1 cut off at the top, the longest 60 s" in html
    assert "cut off" not in curve_html(Curve("t", PLACES, (Line("step", JUMP),)))


def test_what_nobody_told_leaves_a_gap() -> None:
    values = (1.0, 1.0, math.nan, 1.0, 1.0)
    html = curve_html(Curve("t", (1, 2, 3, 4, 5), (Line("step", values),)))
    path = re.findall(r'd="(M[^"]*)"', html)[0]
    assert path.count("M") == 2


def test_many_are_a_band_behind_the_lines() -> None:
    band = Band("peers", tuple(it - 0.1 for it in JUMP), tuple(it + 0.1 for it in JUMP))
    html = curve_html(Curve("t", PLACES, (Line("rank 5", JUMP, "culprit"),), band=band))
    assert html.index('class="c-band"') < html.index('class="c-culprit"')
    assert "peers</span>" in html


def test_without_values_there_is_no_picture() -> None:
    assert curve_html(Curve("t", (), ())) == ""
    assert curve_html(Curve("t", (1, 2), (Line("step", (math.nan, math.nan)),))) == ""


@given(st.lists(st.floats(0, 1e12) | st.just(math.nan), min_size=2, max_size=30))
def test_no_value_leaves_the_picture(values: list[float]) -> None:
    html = curve_html(Curve("t", tuple(range(len(values))), (Line("x", tuple(values)),)))
    for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", html.partition("viewBox")[2].partition("</svg>")[0]):
        assert 0 <= float(x) <= 1000
        assert 0 <= float(y) <= 100


def test_what_a_log_says_is_harmless() -> None:
    curve = Curve(
        "<b>", (1, 2), (Line("<i>", (1.0, 1.0)),), "<u>", Band("<s>", (1.0,) * 2, (1.0,) * 2), 1, "<a>"
    )
    assert not re.search("<[biusa]>", curve_html(curve))
