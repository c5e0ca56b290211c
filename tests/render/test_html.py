"""One file that can be sent to a colleague."""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train_ledger.answer import Diagnosis, Finding, Group, HangAnswer, NextCommand
from train_ledger.render import as_html, as_text

ATTACK = "<script>alert(1)</script><img src=//evil.example onerror='x'>\"&"


def _answer(word: str) -> HangAnswer:
    return HangAnswer(
        "hang",
        (3,),
        findings=(
            Finding(
                "missing_ranks",
                (3,),
                Group(word, word, (0, 3)),
                1,
                word,
                frame=word,
                evidence=(word, "second"),
            ),
        ),
        not_observed=(word,),
        next=(NextCommand(word, word),),
    )


class _Page(HTMLParser):
    """The tags and attributes of a page; raises nothing, collects all."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        self.addresses += [name for name, _ in attrs if name in {"src", "href", "action", "style"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone() -> None:
    page = as_html(_answer("all_reduce"), title="runs/r42")
    assert "default-src &#x27;none&#x27;; style-src &#x27;sha256-" in page
    assert "unsafe-inline" not in page
    assert not re.search(r"https?://|url\(|@import|<link|<img", page)
    assert _Page(page).open == []
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


@pytest.mark.parametrize("tag", ["script", "style"])
def test_the_policy_lets_one_script_run_and_one_stylesheet_hold_and_no_other(tag: str) -> None:
    page = as_html(_answer("all_reduce"))
    ours = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(ours[0].encode()).digest()).decode()
    assert len(ours) == 1
    assert escape(f"{tag}-src 'sha256-{digest}';") in page


def test_where_there_is_no_command_there_is_no_script() -> None:
    page = as_html(Diagnosis("running", "none"))
    assert "script" not in page


def test_the_verdict_is_title_and_heading() -> None:
    page = as_html(_answer("all_reduce"), title="runs/r42")
    assert "<title>✖ runs/r42 – culprit: rank 3</title>" in page
    assert '<h1 class="trouble">culprit: rank 3</h1>' in page


def test_a_diagnosis_makes_a_page_too() -> None:
    page = as_html(Diagnosis("running", "none"))
    assert '<h1 class="fine">nothing wrong: the run is running</h1>' in page


def test_nothing_of_a_log_becomes_a_tag() -> None:
    attacked, tame = _Page(as_html(_answer(ATTACK), title=ATTACK)), _Page(as_html(_answer("x"), title="x"))
    assert attacked.tags == tame.tags
    assert attacked.addresses == []


@given(st.text())
def test_no_text_changes_the_shape_of_the_page(text: str) -> None:
    page = as_html(_answer("x" + text), title="x" + text)
    page.encode()
    assert _Page(page).tags == _Page(as_html(_answer("x"), title="x")).tags


def test_what_to_run_stands_right_below_the_verdict_and_in_a_terminal_last() -> None:
    """Whoever opens a report reads its top; whoever runs a command has its last line before them."""
    answer = _answer("all_reduce")
    diagnosis = Diagnosis("stalled", "hang.host", (3,), confidence="high", details=answer)
    for told in (answer, diagnosis):
        page, text = as_html(told), as_text(told)
        headings = re.findall("<h2>(.*?)</h2>", page)
        assert headings == ["next", "what was found", "evidence", "not observed"]
        assert text.splitlines()[-3:] == ["next", "  # all_reduce", "  all_reduce"]
    assert page.index("confidence") < page.index("<h2>next</h2>")
