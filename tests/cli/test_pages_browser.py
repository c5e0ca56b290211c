"""The pages of all verbs in a real browser, opened from the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.kept_pages import MAKERS, written

pytestmark = pytest.mark.slow

_OF_A4_SHEET = 688
"""Pixels between its margins."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {verb: written(folder, verb) for verb in MAKERS}


@pytest.mark.parametrize("verb", MAKERS)
def test_it_opens_from_the_disk_on_a_phone_on_a_screen_and_on_paper(
    browser: Any, pages: Mapping[str, Path], verb: str
) -> None:
    address = pages[verb].as_uri()
    context = browser.new_context(color_scheme="dark", viewport={"width": 390, "height": 844})
    opened = context.new_page()
    seen: list[str] = []
    opened.on("console", lambda message: seen.append(message.text))
    opened.on("pageerror", lambda error: seen.append(str(error)))
    opened.on("dialog", lambda dialog: seen.append(dialog.message))
    opened.on("request", lambda request: seen.append(request.url))
    opened.goto(address)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    assert _background(opened) == "rgb(17, 20, 23)"
    assert opened.locator("h1").count() == 1
    opened.set_viewport_size({"width": 1400, "height": 900})
    opened.emulate_media(color_scheme="light")
    assert _background(opened) == "rgb(251, 251, 250)"
    assert opened.evaluate("document.documentElement.scrollWidth") <= 1400
    opened.set_viewport_size({"width": _OF_A4_SHEET, "height": 900})
    opened.emulate_media(media="print", color_scheme="dark")
    assert _background(opened) == "rgb(255, 255, 255)", "nobody prints in white on black"
    assert opened.evaluate("document.documentElement.scrollWidth") <= _OF_A4_SHEET
    assert opened.pdf(format="A4").startswith(b"%PDF")
    assert seen == [address]
    context.close()


def _background(opened: Any) -> str:
    return str(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
