"""docs/metrics.md says what the table of fields and the exporter say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from train_ledger.fields import EVENTS, FIELDS, PHASES

_TOOL = Path(__file__).parents[1] / "tools" / "metrics_page.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("metrics_page", _TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(tool: ModuleType) -> str:
    text: str = tool.page()
    return text


def test_the_page_is_current(tool: ModuleType, page: str) -> None:
    assert tool.PAGE.read_text() == page, "run `python tools/metrics_page.py`"


def test_every_field_event_and_phase_has_a_row(page: str) -> None:
    for name in (*FIELDS, *EVENTS, *PHASES):
        assert f"\n| `{name}` | " in page, name


def test_what_is_no_field_is_named_too(page: str) -> None:
    for name in ("train_step", "train_rank_info", "train_ckpt_due_timestamp_seconds", "train_exporter_ready"):
        assert f"\n| `{name}` | " in page, name


def test_a_bar_does_not_break_a_row(tool: ModuleType) -> None:
    assert tool._markdown(("a",), [("x|y",)]) == "| a |\n| --- |\n| x\\|y |\n"
