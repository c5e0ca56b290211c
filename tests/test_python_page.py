"""docs/python.md says what training code may call."""

from __future__ import annotations

import re

import python_page

from train_ledger.signals.monitor import Monitor

INNER = {"open"}
"""Called by `start`, and by nobody else."""


def test_the_page_is_current() -> None:
    assert python_page.PAGE.read_text() == python_page.page(), "run `python tools/python_page.py`"


def test_every_method_is_there() -> None:
    methods = {name for name in dir(Monitor) if not name.startswith("_")} - INNER
    assert set(re.findall(r"^## monitor\.(\w+)$", python_page.page(), re.MULTILINE)) == methods


def test_annotations_are_shown_as_they_are_written() -> None:
    assert "monitor.checkpoint(step: int, *, asynchronous: bool = False)\n" in python_page.page()


def test_what_the_docs_call_is_there() -> None:
    for page in python_page.DOCS.rglob("*.md"):
        for name in re.findall(r"\bmonitor\.(\w+)\(", page.read_text(encoding="utf-8")):
            assert hasattr(Monitor, name), f"{page}: monitor.{name}"
