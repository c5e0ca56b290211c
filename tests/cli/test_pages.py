"""Every answer that a person keeps is one file: whole, of one look, and nothing in it acts."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.kept_pages import ATTACK, MAKERS, written
from train_ledger.cli import app
from train_ledger.render.style import STYLE

_LARGEST_BYTES = 60_000
_WITHOUT_END = {"meta"}
_LOADING = {"src", "href", "action", "background", "poster", "srcset", "data", "style", "xlink:href"}


class Outline(HTMLParser):
    """The tags of a page; raises where one is closed that is not open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.children: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.children.append((self.open[-1] if self.open else "", tag))
        if tag not in _WITHOUT_END:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The text of the page of a verb, made once."""
    folder, made = tmp_path_factory.mktemp("pages"), dict[str, str]()

    def page(verb: str) -> str:
        if verb not in made:
            made[verb] = written(folder, verb).read_text("utf-8")
        return made[verb]

    return page


@pytest.fixture(params=MAKERS)
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_is_whole_and_in_order(page_of: Callable[[str], str], verb: str) -> None:
    found = Outline(page_of(verb))
    assert found.open == []
    assert found.of("html") == [{"lang": "en"}]
    headings = [tag for tag, _ in found.tags if tag in ("h1", "h2", "h3", "h4")]
    assert headings[0] == "h1"
    assert set(headings[1:]) <= {"h2"}
    assert len(found.of("title")) >= 1


def test_one_look(page_of: Callable[[str], str], verb: str) -> None:
    assert re.findall("<style>(.*?)</style>", page_of(verb), re.DOTALL) == [STYLE]


def test_nothing_is_loaded_and_nothing_acts(page_of: Callable[[str], str], verb: str) -> None:
    page = page_of(verb)
    found = Outline(page)
    policy = next(it["content"] or "" for it in found.of("meta") if "http-equiv" in it)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert {name for _, attributes in found.tags for name in attributes} & _LOADING == set()
    assert not re.search(r"(?<!\w)on\w+=", re.sub(r">[^<]*<", "><", page))
    assert {"img", "iframe", "object", "link", "base", "form"} & {tag for tag, _ in found.tags} == set()
    assert not re.search(r"@import|https?://", STYLE)


def test_an_attack_in_a_name_is_a_name(page_of: Callable[[str], str], verb: str) -> None:
    page = page_of(verb)
    assert "<img" not in page
    assert escape(ATTACK) in page


def test_how_it_was_made_stands_below(page_of: Callable[[str], str], verb: str) -> None:
    footer = page_of(verb).partition("<footer>")[2]
    assert f"Made by <code>train-ledger {verb} " in footer
    assert "--html " in footer
    assert re.search(r"train-ledger \d+\.\d+\.\d+, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", footer)
    assert f'<p class="about">{verb} · <b>' in page_of(verb)


def test_tables_and_pictures_say_what_they_are(page_of: Callable[[str], str], verb: str) -> None:
    found = Outline(page_of(verb))
    assert all(it.get("scope") in ("row", "col") for it in found.of("th"))
    pictures = [it for it in found.of("svg") if it.get("aria-hidden") != "true" and "viewbox" not in it]
    assert all(it.get("role") == "img" for it in pictures)
    assert found.children.count(("svg", "title")) >= len(pictures)


def test_it_is_small(page_of: Callable[[str], str], verb: str) -> None:
    assert len(page_of(verb).encode()) < _LARGEST_BYTES


@pytest.mark.parametrize(
    ("verb", "drawn"),
    [
        ("hang", 'class="graph"'),
        ("slow", 'class="c-culprit"'),
        ("slow", "slower since step 101"),
        ("account", 'class="strip"'),
        ("account", 'class="parts"'),
        ("cost", 'class="parts"'),
        ("trace breakdown", 'class="parts"'),
        ("trace diff", 'class="parts"'),
        ("trace memory", 'class="parts"'),
    ],
)
def test_what_a_picture_tells_is_drawn(page_of: Callable[[str], str], verb: str, drawn: str) -> None:
    assert drawn in page_of(verb)


@pytest.mark.parametrize(("verb", "fewer"), [("account", ()), ("preflight", ("--only", "roster"))])
def test_the_older_name_of_the_option_does_the_same(
    tmp_path: Path, verb: str, fewer: tuple[str, ...]
) -> None:
    run = written(tmp_path, verb).parent / ATTACK
    again = tmp_path / "again.html"
    CliRunner().invoke(app, [verb, str(run), *fewer, "--output", str(again)], catch_exceptions=False)
    assert f"Made by <code>train-ledger {verb} " in again.read_text()
