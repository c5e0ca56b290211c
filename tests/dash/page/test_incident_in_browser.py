"""The incident on the page, in a real browser: it comes, it stays as the reader left it, and it fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dash.page.nights import HOSTILE_FRAME, night, picture_of_mesh
from dash.page.opened import PHONE, Open, Tasks
from dash.page.views import healthy, incident
from train_ledger.dash.page import PageView, RunPage, serve
from train_ledger.render import Picture

pytestmark = pytest.mark.slow

LONGEST_MS = 100.0


def test_it_appears_on_the_open_page_and_nothing_of_a_stack_acts(browser: Any) -> None:
    view: list[PageView] = [healthy()]
    with serve(lambda: view[0], port=0, interval_s=0.1) as url:
        opened = Open(browser, url)
        assert not opened.page.locator("#waits").is_visible()
        view[0] = night()
        opened.page.locator("#waits td", has_text="has not come").wait_for(timeout=20_000)
        assert opened.page.get_by_role("img", name="who waits for whom").count() == 1
        assert opened.page.locator("#waits table").first.is_visible()
        assert HOSTILE_FRAME in opened.page.locator("#stacks pre").first.inner_text()
        assert "8 dumps and 8 stacks" in opened.page.locator("#incident").inner_text()
        assert "hang.fabric" in opened.page.locator("#earlier").inner_text()
        assert "20.00 USD" in opened.page.locator("#cost").inner_text()
        view[0] = healthy()
        opened.page.locator("#waits").wait_for(state="hidden", timeout=20_000)
        assert opened.complaints == []


def test_what_the_reader_opened_and_closed_stays_so(browser: Any) -> None:
    view: list[PageView] = [night()]
    with serve(lambda: view[0], port=0, interval_s=0.1) as url:
        opened = Open(browser, url)
        boxes = opened.page.locator("#stacks details")
        boxes.nth(0).locator("summary").click()
        boxes.nth(1).locator("summary").press("Enter")
        opened.page.evaluate("document.querySelector('#stacks').firstChild.dataset.old = 'yes'")
        assert view[0].picture is not None
        shorter = tuple(replace(it, frames=it.frames[:5]) for it in view[0].picture.stacks)
        view[0] = replace(view[0], picture=replace(view[0].picture, stacks=shorter))
        opened.page.locator("#stacks [data-old]").wait_for(state="detached", timeout=20_000)
        assert [boxes.nth(at).get_attribute("open") for at in (0, 1)] == [None, ""]
        assert opened.page.evaluate("document.activeElement.tagName") == "SUMMARY"
        assert opened.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_drawings_scroll_in_themselves_and_can_be_read(browser: Any, scheme: str) -> None:
    view = night(16)
    with serve(lambda: view, port=0) as url:
        opened = Open(browser, url, viewport=PHONE, color_scheme=scheme)
        assert opened.width <= PHONE["width"]
        table = opened.page.locator("#waits > .scroll > table").first
        assert table.evaluate("it => it.scrollWidth <= it.parentElement.clientWidth")
        for what in ("#waits .drawn text", "#waits .drawn td", "#stacks pre"):
            light, dark = opened.page.locator(what).first.evaluate(CONTRAST)
            assert (max(light, dark) + 0.05) / (min(light, dark) + 0.05) > 4.5, what
        too_low = opened.page.locator("a, button, summary").evaluate_all(LOW)
        assert too_low == []
        assert opened.complaints == []


def test_the_report_opens_from_the_page(browser: Any, tmp_path: Path) -> None:
    (tmp_path / f"{incident().id}.html").write_text("<h1>the report</h1>")
    view = night()
    with serve(RunPage(lambda: view, reports=tmp_path), port=0) as url:
        opened = Open(browser, url)
        opened.page.locator("#incident a", has_text="report").click()
        opened.page.locator("h1", has_text="the report").wait_for(timeout=20_000)
        assert opened.complaints == []


def test_a_thousand_ranks_with_all_that_is_found_hold_nobody_up(browser: Any) -> None:
    """Another verdict each time, so that all of the incident changes."""
    drawn = picture_of_mesh(1024, 5)
    one, other = night(1024, 5, picture=drawn), night(1024, 700, picture=turned(drawn))
    view: list[PageView] = [one]
    with serve(lambda: view[0], port=0, interval_s=0.2) as url:
        opened = Open(browser, url)
        assert opened.page.locator("#waits .drawn g").count() <= 24
        with Tasks(browser, opened) as tasks:
            for shown, number in ((other, 700), (one, 5)):
                view[0] = shown
                opened.page.locator("h1", has_text=f"rank {number} on").wait_for(timeout=60_000)
                opened.page.locator("#stacks summary", has_text=f"rank {number} culprit").wait_for(
                    timeout=60_000
                )
        print(f"the longest task of two updates took {tasks.longest_ms:.0f} ms")
        assert 0 < tasks.longest_ms < LONGEST_MS
        assert opened.complaints == []


def turned(drawn: Picture) -> Picture:
    """The same with rank 700 in the place of rank 5."""
    assert drawn.graph is not None
    nodes = tuple(replace(it, ranks=(700,)) if it.is_culprit else it for it in drawn.graph.nodes)
    stacks = tuple(replace(it, ranks=(700,)) if it.ranks == (5,) else it for it in drawn.stacks)
    return replace(drawn, graph=replace(drawn.graph, nodes=nodes), stacks=stacks)


LOW = """all => all.filter((it) => it.getClientRects().length > 0)
  .filter((it) => it.getClientRects()[0].height < 32)
  .map((it) => `${it.textContent}: ${it.getClientRects()[0].height}`)"""
"""What can be pressed and is lower than a finger's end, in pixels."""

CONTRAST = """it => {
  const shine = (colour) => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => {
      const share = Number(part) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const style = getComputedStyle(it);
  const ink = it instanceof SVGElement ? style.fill : style.color;
  let box = it instanceof SVGElement ? it.closest("div") : it;
  while (box && getComputedStyle(box).backgroundColor === "rgba(0, 0, 0, 0)") box = box.parentElement;
  return [shine(ink), shine(getComputedStyle(box || document.body).backgroundColor)];
}"""
"""The light of a thing's colour, and of what lies behind it, as WCAG reckons it; 4.5 : 1 can be read."""
