"""Curves and strips in a real browser: what is drawn, and how long that holds the page up."""

from __future__ import annotations

from typing import Any

import pytest

from dash.page.histories import KEPT, Kept, long, restarted
from dash.page.opened import WIDE, Open, Tasks
from dash.page.views import hung
from train_ledger.dash.page import RunPage, serve
from train_ledger.facts import Step
from train_ledger.ledger.history import History

pytestmark = pytest.mark.slow

LONGEST_MS = 100.0
"""That a task holds up the page's own thread."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_curves_and_strips_are_drawn_and_nothing_is_complained_of(browser: Any, scheme: str) -> None:
    with serve(RunPage(hung, KEPT), port=0) as url:
        opened = Open(browser, url, color_scheme=scheme)
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=60_000)
        opened.page.locator("#strips canvas").first.wait_for(timeout=60_000)
        assert opened.page.locator("#curves figcaption").all_inner_texts() == [
            "loss",
            "own work, waiting in collectives, waiting for data",
        ]
        assert "highest now: rank 5" in opened.page.locator("#strip_compute_s p").inner_text()
        assert "shaded: steps done once more" in opened.page.locator("#read").inner_text()
        assert opened.width <= WIDE["width"]
        assert opened.complaints == []


_OVERHANG_PX = (
    "Math.max(...[...document.querySelectorAll('#curves figure')].map((figure) => "
    "figure.querySelector('.main-svg').getBoundingClientRect().right - figure.getBoundingClientRect().right))"
)


def test_no_curve_is_drawn_over_its_neighbour_also_where_a_new_one_comes_to_stand_beside_it(
    browser: Any,
) -> None:
    history = History()
    for step in range(1, 60):
        history.add(Step(1000.0 + step, step, 0, 0, "n0", values={"loss": 2.0}))
    with serve(RunPage(hung, Kept(history)), port=0) as url:
        opened = Open(browser, url)
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=60_000)
        told = {"loss": 2.0, "rss_bytes": 9e9, "lr": 3e-4}
        for step in range(60, 80):
            history.add(Step(1000.0 + step, step, 0, 0, "n0", values=told))
        opened.wait_for(
            "document.querySelectorAll('#curves .js-plotly-plot .main-svg').length >= 9 && !asking"
        )
        assert opened.page.evaluate(_OVERHANG_PX) < 1
    with serve(RunPage(hung, KEPT), port=0) as url:
        opened = Open(browser, url)
        opened.wait_for(
            "document.querySelectorAll('#curves .js-plotly-plot .main-svg').length >= 6 && !asking"
        )
        assert opened.page.evaluate(_OVERHANG_PX) < 1
        assert opened.complaints == []


def test_the_smallest_and_the_largest_figures_have_an_axis_that_says_so(browser: Any) -> None:
    """Without powers: plotly.js writes those with styles of their own, which the page refuses."""
    history = History()
    for step in range(1, 60):
        figures = {"lr": 3e-4, "grad_norm": 10.0 ** (step // 5 - 6), "rss_bytes": 9.66e9, "loss": 1e-7 * step}
        history.add(Step(1000.0 + step, step, 0, 0, "n0", values=figures))
    with serve(RunPage(hung, Kept(history)), port=0) as url:
        opened = Open(browser, url)
        opened.page.locator("figcaption", has_text="host memory").wait_for(timeout=60_000)
        rates = opened.page.locator("figure", has_text="learning rate").locator(".ytick text")
        rates.first.wait_for(timeout=60_000)
        assert any(text.endswith("e−4") for text in rates.all_text_contents())
        sizes = opened.page.locator("figure", has_text="host memory").locator(".ytick text")
        sizes.first.wait_for(timeout=60_000)
        told = sizes.all_text_contents()
        assert len(set(told)) == len(told) > 1
        assert opened.complaints == []


def test_who_looks_closer_gets_finer_steps(browser: Any) -> None:
    with serve(RunPage(hung, Kept(restarted(ranks=1, steps=5000))), port=0) as url:
        opened = Open(browser, url)
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=60_000)
        opened.wait_for("!asking")
        opened.page.evaluate(
            "Plotly.relayout(document.querySelector('#curves .js-plotly-plot'), "
            "{'xaxis.range[0]': 1000, 'xaxis.range[1]': 1100})"
        )
        opened.page.locator("#read", has_text="double click shows all again").wait_for(timeout=60_000)
        opened.wait_for("!asking")
        assert any("first=1000" in url and "last=1100" in url for url in opened.requests)
        assert opened.complaints == []


def test_a_month_is_zoomed_into_and_scrolled_without_a_stutter(browser: Any) -> None:
    with serve(RunPage(hung, Kept(long())), port=0) as url:
        opened = Open(browser, url)
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=60_000)
        opened.page.locator("#curves").scroll_into_view_if_needed()
        opened.wait_for("!asking")
        with Tasks(browser, opened) as tasks:
            for _ in range(3):
                zoom(opened)
            for way in (400, 400, -400, -400):
                opened.page.mouse.wheel(0, way)
                opened.page.wait_for_timeout(100)
        assert opened.page.evaluate("range[1] - range[0]") < 100_000
        print(f"the longest task of three zooms took {tasks.longest_ms:.0f} ms")
        assert tasks.longest_ms < LONGEST_MS
        assert opened.complaints == []


def zoom(opened: Open) -> None:
    """Draw a window over a part of the first curves, and wait for the finer ones."""
    mouse = opened.page.mouse
    opened.page.locator("#curves").scroll_into_view_if_needed()
    plot = opened.page.locator("#curves .js-plotly-plot").first.bounding_box()
    before = opened.page.evaluate("JSON.stringify(range)")
    mouse.move(plot["x"] + 200, plot["y"] + 80)
    mouse.down()
    mouse.move(plot["x"] + 400, plot["y"] + 90, steps=4)
    mouse.up()
    opened.wait_for(f"JSON.stringify(range) !== {before!r} && !asking")
    opened.wait_for("document.querySelector('#read').textContent.includes('shows all again')")
