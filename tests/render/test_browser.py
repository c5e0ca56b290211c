"""The page of a hang in a real browser, opened from the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from render.test_drawing import ATTACK, page

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_opens_without_a_complaint_or_a_request(
    browser: Any, tmp_path: Path, scheme: str, width: int
) -> None:
    file = tmp_path / "hang.html"
    file.write_text(page(ATTACK), "utf-8")
    opened = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
    seen: list[str] = []
    opened.on("console", lambda message: seen.append(message.text))
    opened.on("pageerror", lambda error: seen.append(str(error)))
    opened.on("dialog", lambda dialog: seen.append(dialog.message))
    opened.on("request", lambda request: seen.append(request.url))
    opened.goto(file.as_uri())
    assert seen == [file.as_uri()]
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.locator("svg rect").count() == 3
    assert opened.locator("tr.here td.odd").inner_text() == ATTACK
    dark = opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 23)"
    assert dark is (scheme == "dark")


def test_a_command_is_copied_as_it_is(browser: Any, tmp_path: Path) -> None:
    from train_ledger.answer import HangAnswer, NextCommand
    from train_ledger.render import as_html

    command = "py-spy dump --pid 4711 && echo '<done>'"
    file = tmp_path / "hang.html"
    file.write_text(as_html(HangAnswer("no_hang", next=(NextCommand("why", command),))), "utf-8")
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    opened = context.new_page()
    opened.goto(file.as_uri())
    opened.locator("button", has_text="copy").click()
    opened.locator("button", has_text="copied").wait_for(timeout=5000)
    assert opened.evaluate("navigator.clipboard.readText()") == command


def test_it_is_whole_without_scripts(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "hang.html"
    file.write_text(page("all_reduce"), "utf-8")
    opened = browser.new_context(java_script_enabled=False).new_page()
    opened.goto(file.as_uri())
    assert opened.locator("h1").inner_text() == "culprit: rank 5"
    assert opened.locator("table").count() == 2
    assert opened.locator("svg").count() == 1
