"""The page in a real browser: it looks, it stays current, and nothing from a log does anything."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dash.page.histories import KEPT, Kept, restarted
from dash.page.views import HOSTILE, healthy, hung
from dash.states import T0, running, with_rank
from train_ledger.dash.page import PageView, RunPage, serve
from train_ledger.facts import Step
from train_ledger.ledger.history import History

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as play:
        launched = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


class Open:
    """A page in a browser, and what the browser complained of."""

    def __init__(self, browser: Any, url: str, **context: Any) -> None:
        self.page = browser.new_context(**context).new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        started = time.monotonic()
        self.page.goto(url)
        self.opened_s = time.monotonic() - started


def test_an_incident_appears_on_the_open_page(browser: Any, tmp_path: Path) -> None:
    view: list[PageView] = [healthy()]
    with serve(lambda: view[0], port=0, interval_s=0.1) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000})
        assert opened.page.locator("h1").inner_text().lower().startswith("nothing wrong: step 100")
        view[0] = hung()
        opened.page.locator("h1", has_text="culprit: rank 5 on node0").wait_for(timeout=5000)
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
        opened.page.locator("button", has_text="copied").wait_for(timeout=5000)
        copied = opened.page.evaluate("navigator.clipboard.readText()")
    assert copied == "py-spy dump --pid 1005 && echo '<done>'"


def test_a_page_that_lost_its_keeper_says_so(browser: Any) -> None:
    with serve(healthy, port=0, interval_s=0.1) as url:
        opened = Open(browser, url)
        opened.page.locator("#link", has_text="live").wait_for(timeout=5000)
    opened.page.locator("#link", has_text="no connection").wait_for(timeout=15000)
    assert "stale" in opened.page.locator("body").get_attribute("class")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_runs_out_of_the_screen(browser: Any, scheme: str) -> None:
    with serve(hung, port=0) as url:
        opened = Open(browser, url, viewport={"width": 390, "height": 844}, color_scheme=scheme)
        wide = opened.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390
        dark = opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 23)"
        assert dark is (scheme == "dark")
        assert opened.complaints == []


def test_the_page_is_complete_without_scripts(browser: Any) -> None:
    with serve(hung, port=0) as url:
        opened = Open(browser, url, java_script_enabled=False)
        assert opened.page.locator("h1").inner_text().lower() == "culprit: rank 5 on node0"
        assert opened.page.locator("code", has_text="py-spy dump").count() == 1


def test_a_thousand_ranks_open_in_a_moment(browser: Any) -> None:
    with serve(lambda: hung(ranks=1024, culprit=700), port=0) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000})
        again = Open(browser, url, viewport={"width": 1400, "height": 1000})
        assert min(opened.opened_s, again.opened_s) < 2
        assert opened.page.locator("svg.map rect").count() == 1024
        assert opened.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_curves_and_strips_are_drawn_and_nothing_is_complained_of(
    browser: Any, tmp_path: Path, scheme: str
) -> None:
    with serve(RunPage(hung, KEPT), port=0) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000}, color_scheme=scheme)
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=20000)
        opened.page.locator("#strips canvas").first.wait_for(timeout=20000)
        assert opened.page.locator("#curves figcaption").all_inner_texts() == [
            "loss",
            "own work, waiting in collectives, waiting for data",
        ]
        assert "highest now: rank 5" in opened.page.locator("#strip_compute_s p").inner_text()
        assert "shaded: steps done once more" in opened.page.locator("#read").inner_text()
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 1400
        assert opened.complaints == []


def test_the_smallest_and_the_largest_figures_have_an_axis_that_says_so(browser: Any) -> None:
    """Without powers: plotly.js writes those with styles of their own, which the page refuses."""
    history = History()
    for step in range(1, 60):
        figures = {"lr": 3e-4, "grad_norm": 10.0 ** (step // 5 - 6), "rss_bytes": 9.66e9, "loss": 1e-7 * step}
        history.add(Step(1000.0 + step, step, 0, 0, "n0", values=figures))
    with serve(RunPage(hung, Kept(history)), port=0) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000})
        opened.page.locator("figcaption", has_text="host memory").wait_for(timeout=20_000)
        rates = opened.page.locator("figure", has_text="learning rate").locator(".ytick text")
        rates.first.wait_for(timeout=20_000)
        assert any(text.endswith("e−4") for text in rates.all_text_contents())
        sizes = opened.page.locator("figure", has_text="host memory").locator(".ytick text")
        sizes.first.wait_for(timeout=20_000)
        told = sizes.all_text_contents()
        assert len(set(told)) == len(told) > 1
        assert opened.complaints == []


def test_who_looks_closer_gets_finer_steps(browser: Any) -> None:
    with serve(RunPage(hung, Kept(restarted(ranks=1, steps=5000))), port=0) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000})
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=20000)
        asked: list[str] = []
        opened.page.on("request", lambda request: asked.append(request.url))
        opened.page.evaluate(
            "Plotly.relayout(document.querySelector('#curves .js-plotly-plot'), "
            "{'xaxis.range[0]': 1000, 'xaxis.range[1]': 1100})"
        )
        deadline = time.monotonic() + 20
        while not any("first=1000" in url and "last=1100" in url for url in asked):
            assert time.monotonic() < deadline, asked
            opened.page.wait_for_timeout(100)
        opened.page.locator("#read", has_text="double click shows all again").wait_for(timeout=10000)
        assert opened.complaints == []


def test_a_thousand_ranks_are_drawn_as_fast_as_eight(browser: Any) -> None:
    """Updates hold up the page's own thread for less than a tenth of a second."""
    history = Kept(restarted(ranks=1024, steps=40))
    with serve(RunPage(lambda: hung(ranks=1024, culprit=700), history), port=0, interval_s=0.5) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000})
        opened.page.locator("#strips canvas").first.wait_for(timeout=30000)
        assert opened.page.evaluate("document.querySelector('#strip_compute_s canvas').height") == 1024
        took_ms = [
            opened.page.evaluate(
                "async () => { const answer = await (await fetch('/api/strips')).json();"
                "const began = performance.now(); drawStrip(answer.ranks[0], 'rank', (at) => at);"
                "return performance.now() - began; }"
            )
            for _ in range(5)
        ]
        assert min(took_ms) < 100
        assert opened.complaints == []


def test_who_works_by_keyboard_keeps_their_place(browser: Any) -> None:
    view: list[PageView] = [hung()]
    with serve(lambda: view[0], port=0, interval_s=0.1) as url:
        opened = Open(browser, url, permissions=["clipboard-read", "clipboard-write"])
        page = opened.page
        page.locator("#link", has_text="live").wait_for(timeout=10_000)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "copy"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.locator("button", has_text="copied").wait_for(timeout=5000)
        assert page.evaluate("navigator.clipboard.readText()").startswith("py-spy dump")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "ranks"
        page.evaluate("document.activeElement.firstChild.dataset.old = 'yes'")
        view[0] = hung(culprit=6)
        page.locator("[data-old]").wait_for(state="detached", timeout=10_000)
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "ranks"
        assert opened.complaints == []


def test_the_name_of_a_host_hides_no_column(browser: Any) -> None:
    host = "gpu-worker-h100-sxm5-eu-north-1c-pool-alpha-0042.internal.example-training.com"
    view = hung()
    view = replace(view, state=with_rank(view.state, 3, host=host))
    with serve(lambda: view, port=0) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000})
        table = opened.page.locator("#rank_list .scroll")
        assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
        assert opened.page.locator(f"td[title='{host}']").inner_text().endswith("alpha-0042")


def test_an_update_of_a_thousand_ranks_holds_the_page_up_for_no_tenth_of_a_second(browser: Any) -> None:
    """With every part changed, the curves among them, which in a run none of the updates does."""
    history = Kept(restarted(ranks=1024, steps=40))
    with serve(RunPage(lambda: hung(ranks=1024, culprit=700), history), port=0, interval_s=60) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000})
        assert painted_s(opened) < 2 or painted_s(Open(browser, url)) < 2
        opened.page.locator("#strips canvas").first.wait_for(timeout=30_000)
        taken = opened.page.evaluate(
            "async () => { const took = [];"
            "const sections = Array.from(document.querySelectorAll('section[id]:not(#plots)'));"
            "for (let at = 0; at < 8; at += 1) {"
            "  const parts = Object.fromEntries(sections.map((part) => [part.id, part.innerHTML]));"
            "  const began = performance.now();"
            "  take({ t: stateT + 1, parts }); document.body.getBoundingClientRect();"
            "  took.push(performance.now() - began);"
            "  await new Promise((resume) => { setTimeout(resume, 50); }); }"
            "return took; }"
        )
        assert min(taken) < 100
        opened.page.locator("#plots").scroll_into_view_if_needed()
        longest = opened.page.evaluate(
            "async () => { const longest = [];"
            "for (let at = 0; at < 6; at += 1) {"
            "  let most = 0;"
            "  const tasks = new PerformanceObserver((seen) => {"
            "    for (const task of seen.getEntries()) most = Math.max(most, task.duration); });"
            "  tasks.observe({ type: 'longtask' });"
            "  for (const entry of drawn.values()) entry.text = '';"
            "  await refresh();"
            "  await new Promise((resume) => { setTimeout(resume, 100); });"
            "  tasks.disconnect(); longest.push(most); }"
            "return longest; }"
        )
        assert min(longest) < 100
        assert opened.complaints == []


def test_two_days_on_the_open_page_leave_nothing_behind(browser: Any) -> None:
    """Ten minutes of the run at every look: its memory stays what it was after a first day."""
    looks: list[int] = []

    def night() -> PageView:
        looks.append(len(looks))
        t = T0 + 600.0 * len(looks)
        if len(looks) % 12 < 3:
            return replace(hung(ranks=16), state=replace(hung(ranks=16).state, t=t))
        return PageView(running(t=t, ranks=16, step=len(looks) * 50, last_step_t=t - 2))

    with serve(RunPage(night, Kept(restarted(ranks=16, steps=100))), port=0, interval_s=0.03) as url:
        opened = Open(browser, url, viewport={"width": 1400, "height": 1000})
        opened.page.locator("#curves .main-svg").first.wait_for(timeout=20_000)
        tools = opened.page.context.new_cdp_session(opened.page)
        until_look(opened, looks, 144)
        after_a_day = least_kept_bytes(tools)
        until_look(opened, looks, 3 * 144)
        assert least_kept_bytes(tools) < after_a_day + 1_500_000
        assert opened.complaints == []


def painted_s(opened: Open) -> float:
    paints = "performance.getEntriesByName('first-contentful-paint').map((paint) => paint.startTime)"
    opened.page.locator("h1").wait_for(timeout=20_000)
    deadline = time.monotonic() + 20
    while not (told := opened.page.evaluate(paints)):
        assert time.monotonic() < deadline, "nothing was painted"
        opened.page.wait_for_timeout(50)
    return float(told[0]) / 1000


def until_look(opened: Open, looks: list[int], number: int) -> None:
    deadline = time.monotonic() + 60
    while len(looks) < number:
        assert time.monotonic() < deadline, len(looks)
        opened.page.evaluate("for (const entry of drawn.values()) entry.text = ''; refresh();")
        opened.page.wait_for_timeout(800)


def least_kept_bytes(tools: Any) -> int:
    """What is still held after the garbage went; the least of some looks, since drawing goes on."""
    held = []
    for _ in range(5):
        tools.send("HeapProfiler.collectGarbage")
        held.append(int(tools.send("Runtime.getHeapUsage")["usedSize"]))
    return min(held)
