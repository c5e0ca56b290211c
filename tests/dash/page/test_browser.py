"""The page in a real browser: it looks, it stays current, and nothing from a log does anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dash.page.opened import PHONE, Open
from dash.page.views import HOSTILE, healthy, hung
from dash.states import with_rank
from train_ledger.dash.page import PageView, RunPage, serve
from train_ledger.ledger.hardware.records import GpuState, XidState

pytestmark = pytest.mark.slow


def test_an_incident_appears_on_the_open_page(browser: Any, tmp_path: Path) -> None:
    view: list[PageView] = [healthy()]
    with serve(lambda: view[0], port=0, interval_s=0.1) as url:
        opened = Open(browser, url)
        assert opened.page.locator("h1").inner_text().lower().startswith("nothing wrong: step 100")
        view[0] = hung()
        opened.page.locator("h1", has_text="culprit: rank 5 on node0").wait_for(timeout=60_000)
        assert opened.page.title().startswith("✖ r42")
        assert opened.page.locator("tr.culprit td").nth(6).inner_text() == HOSTILE
        assert opened.page.locator("script").count() == 1
        assert opened.page.locator("#link").inner_text() == "live"
        opened.page.screenshot(path=tmp_path / "incident.png", full_page=True)
        assert (tmp_path / "incident.png").stat().st_size > 20_000
        assert opened.complaints == []


def test_a_command_is_copied_as_it_is(browser: Any) -> None:
    with serve(hung, port=0) as url:
        opened = Open(browser, url, permissions=["clipboard-read", "clipboard-write"])
        opened.page.locator("button", has_text="copy").first.click()
        opened.page.locator("button", has_text="copied").wait_for(timeout=60_000)
        copied = opened.page.evaluate("navigator.clipboard.readText()")
    assert copied == "py-spy dump --pid 1005 && echo '<done>'"


def test_a_page_that_lost_its_keeper_says_so(browser: Any) -> None:
    with serve(healthy, port=0, interval_s=0.1) as url:
        opened = Open(browser, url)
        opened.page.locator("#link", has_text="live").wait_for(timeout=60_000)
    opened.page.locator("#link", has_text="no connection").wait_for(timeout=60_000)
    assert "stale" in opened.page.locator("body").get_attribute("class")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_runs_out_of_the_screen(browser: Any, scheme: str) -> None:
    with serve(hung, port=0) as url:
        opened = Open(browser, url, viewport=PHONE, color_scheme=scheme)
        assert opened.width <= PHONE["width"]
        dark = opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 23)"
        assert dark is (scheme == "dark")
        assert opened.complaints == []


def test_of_several_runs_a_phone_shows_what_is_wrong_with_each(browser: Any) -> None:
    troubled = hung()
    troubled = replace(troubled, state=replace(troubled.state, run="llama-70b-pretrain-eu-north-" + 40 * "1"))
    with serve([RunPage(lambda: troubled), RunPage(healthy)], port=0) as url:
        opened = Open(browser, url, viewport=PHONE)
        assert opened.width <= PHONE["width"]
        box = opened.page.locator(".scroll")
        assert box.evaluate("it => it.scrollWidth <= it.clientWidth")
        assert opened.page.locator("td .trouble").inner_text() == "culprit: rank 5 on node0"
        last_step = opened.page.locator("td[data-of='last step']").first
        assert last_step.evaluate("it => getComputedStyle(it, '::before').content") == '"last step: "'
        assert opened.complaints == []


def test_the_page_is_complete_without_scripts(browser: Any) -> None:
    with serve(hung, port=0) as url:
        opened = Open(browser, url, java_script_enabled=False)
        assert opened.page.locator("h1").inner_text().lower() == "culprit: rank 5 on node0"
        assert opened.page.locator("code", has_text="py-spy dump").count() == 1


def test_who_works_by_keyboard_keeps_their_place(browser: Any) -> None:
    view: list[PageView] = [hung()]
    with serve(lambda: view[0], port=0, interval_s=0.1) as url:
        opened = Open(browser, url, permissions=["clipboard-read", "clipboard-write"])
        page = opened.page
        page.locator("#link", has_text="live").wait_for(timeout=60_000)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "copy"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.locator("button", has_text="copied").wait_for(timeout=60_000)
        assert page.evaluate("navigator.clipboard.readText()").startswith("py-spy dump")
        for _ in range(10):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.getAttribute('aria-label')") == "ranks":
                break
        page.evaluate("document.activeElement.firstChild.dataset.old = 'yes'")
        view[0] = hung(culprit=6)
        page.locator("[data-old]").wait_for(state="detached", timeout=60_000)
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "ranks"
        assert opened.complaints == []


def test_the_name_of_a_host_hides_no_column(browser: Any) -> None:
    host = "gpu-worker-h100-sxm5-eu-north-1c-pool-alpha-0042.internal.example-training.com"
    view = hung()
    view = replace(view, state=with_rank(view.state, 3, host=host))
    with serve(lambda: view, port=0) as url:
        opened = Open(browser, url)
        table = opened.page.locator("#rank_list .scroll")
        assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
        assert opened.page.locator(f"td[title='{host}']").inner_text().endswith("alpha-0042")


def test_on_a_phone_hardware_says_what_is_wrong_without_being_pushed_aside(browser: Any) -> None:
    view = healthy()
    host = "gpu-worker-h100-sxm5-eu-north-1c-pool-alpha-0042.internal.example-training.com"
    dead = GpuState(host, 5, xids=(XidState(79, "page", 2, view.state.t - 60, view.state.t - 30),))
    view = replace(view, state=replace(view.state, gpus=(dead,)))
    with serve(lambda: view, port=0) as url:
        opened = Open(browser, url, viewport=PHONE)
        box = opened.page.locator("#hardware .scroll")
        assert box.evaluate("it => it.scrollWidth <= it.clientWidth")
        assert opened.page.locator("#hardware td.whole").inner_text() == "XID 79 × 2, 30 s ago"
        assert opened.complaints == []
