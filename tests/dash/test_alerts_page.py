"""docs/alerts.md says of every rule what the table of rules says."""

from __future__ import annotations

import re
from pathlib import Path

from train_ledger.dash import RULES
from train_ledger.ops.lint.runbook import anchors
from train_ledger.ops.runbook import RUNBOOK

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "alerts.md").read_text()
ROWS = re.findall(r"^\| \[(\w+)\]\(([^)#]+)#([a-z]+)\) \| (\w+) \| ([\w, ]+) \| ", PAGE, re.MULTILINE)


def test_every_rule_has_its_row_with_its_level_and_its_labels() -> None:
    told = {name: (level, tuple(labels.split(", "))) for name, _, _, level, labels in ROWS}
    assert told == {rule.name: (rule.level, rule.labels) for rule in RULES}


def test_every_link_leads_into_the_runbook() -> None:
    for _, file, anchor, *_ in ROWS:
        assert (ROOT / "docs" / file).resolve() == RUNBOOK.resolve()
        assert anchor in anchors(RUNBOOK.read_text())
