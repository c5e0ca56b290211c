"""docs/alerts.md says of every rule what the table of rules says."""

from __future__ import annotations

import re
from pathlib import Path

import alerts_page
import runbook_page

from train_ledger.config import Alerts
from train_ledger.dash import RULES
from train_ledger.ops.lint.runbook import anchors

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "alerts.md").read_text()
ROWS = re.findall(r"^\| \[(\w+)\]\(([^)#]+)#([a-z]+)\) \| (\w+) \| ([\w, ]+) \| ", PAGE, re.MULTILINE)


def test_every_rule_has_its_row_with_its_level_and_its_labels() -> None:
    told = {name: (level, tuple(labels.split(", "))) for name, _, _, level, labels in ROWS}
    assert told == {rule.name: (rule.level, rule.labels) for rule in RULES}


def test_every_link_leads_into_the_runbook() -> None:
    for _, file, anchor, *_ in ROWS:
        assert file == runbook_page.PAGE.name
        assert anchor in anchors(runbook_page.page())


def test_the_pages_are_current() -> None:
    assert alerts_page.PAGE.read_text() == alerts_page.page(), "run `python tools/alerts_page.py`"
    assert runbook_page.PAGE.read_text() == runbook_page.page(), "run `python tools/runbook_page.py`"


def test_numbers_are_those_of_the_thresholds() -> None:
    row = "no step for max(4 min, 3 × the usual one)"
    assert row in alerts_page.page(Alerts(stall_floor_s=240.0))
    assert row not in alerts_page.page()


def test_what_silences_what_is_said() -> None:
    assert "| GpuXidError | GpuClockLow | run, host |" in alerts_page.page()


def test_pages_stand_before_records() -> None:
    levels = [level for *_, level, _ in ROWS]
    assert levels == sorted(levels)
