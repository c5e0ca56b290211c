"""docs/answers.md says what the verbs answer."""

from __future__ import annotations

import dataclasses

import answers_page
import pytest

from train_ledger.answer import CAUSES, Diagnosis, HangAnswer


@pytest.fixture(scope="module")
def page() -> str:
    text: str = answers_page.page()
    return text


def test_the_page_is_current(page: str) -> None:
    assert answers_page.PAGE.read_text() == page, "run `python tools/answers_page.py`"


@pytest.mark.parametrize("record", [HangAnswer, Diagnosis])
def test_every_key_has_a_row(page: str, record: type) -> None:
    for field in dataclasses.fields(record):  # type: ignore[arg-type]
        assert f"\n| `{field.name}` | " in page


def test_what_a_key_is() -> None:
    met: dict[str, type] = {}
    assert answers_page._is(HangAnswer | None, met) == "[HangAnswer](#hang) or null"
    assert met == {"HangAnswer": HangAnswer}
    assert answers_page._is(tuple[tuple[int, ...], ...], met) == "list of lists of whole numbers"


def test_the_causes_are_where_the_page_says_that_they_are() -> None:
    coverage = (answers_page.DOCS / "coverage.md").read_text()
    assert all(f"| `{cause}` | {means} |" in coverage for cause, means in CAUSES.items())
