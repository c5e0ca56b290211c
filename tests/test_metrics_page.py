"""docs/metrics.md says what the table of fields and the exporter say."""

from __future__ import annotations

import metrics_page
import page as pages
import pytest

from train_ledger.fields import EVENTS, FIELDS, PHASES


@pytest.fixture(scope="module")
def page() -> str:
    text: str = metrics_page.page()
    return text


def test_the_page_is_current(page: str) -> None:
    assert metrics_page.PAGE.read_text() == page, "run `python tools/metrics_page.py`"


def test_every_field_event_and_phase_has_a_row(page: str) -> None:
    for name in (*FIELDS, *EVENTS, *PHASES):
        assert f"\n| `{name}` | " in page, name


def test_what_is_no_field_is_named_too(page: str) -> None:
    for name in ("train_step", "train_rank_info", "train_ckpt_due_timestamp_seconds", "train_exporter_ready"):
        assert f"\n| `{name}` | " in page, name


def test_a_bar_does_not_break_a_row() -> None:
    assert pages.table(("a",), [("x|y",)]) == "| a |\n| --- |\n| x\\|y |\n"


def test_the_page_says_how_a_field_is_exported(page: str) -> None:
    """Once, by a rule: a column of names that repeat each other pushes the alerts off a screen."""
    assert "before its name" in page
    for field in FIELDS.values():
        total = "_total" if field.kind == "counter" else ""
        assert field.metric == f"train_{field.name.removesuffix('_total')}{total}"
