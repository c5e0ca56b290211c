"""The runbook speaks of every alert, and of no command that is none."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from train_ledger.cli import app
from train_ledger.dash import RULES, Rule
from train_ledger.ops.lint.runbook import RUNBOOK, anchors, metrics_named

TEXT = RUNBOOK.read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"(?:`|^    )(train-ledger [^`\n]+)", TEXT, re.MULTILINE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_alert_has_a_section_where_its_link_leads(rule: Rule) -> None:
    assert rule.runbook in anchors(TEXT)
    section = SECTIONS[rule.name]
    assert section.lstrip().startswith(f"*{rule.level}* – ")
    if rule.level == "page":
        for part in ("**Means**", "**Five minutes**", "**Act**", "**Escalate**"):
            assert part in section


def test_no_section_is_of_an_alert_that_is_none() -> None:
    assert set(SECTIONS) == {rule.name for rule in RULES}


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_every_command_is_one_that_can_be_typed(command: str) -> None:
    _, verb, *arguments = shlex.split(command)
    verbs = typer.main.get_command(app).commands
    assert verb in verbs
    options = {option for parameter in verbs[verb].params for option in parameter.opts}
    assert {argument for argument in arguments if argument.startswith("-")} <= options


def test_links_within_it_lead_somewhere() -> None:
    assert set(re.findall(r"\]\(#([\w-]+)\)", TEXT)) <= anchors(TEXT)


def test_metrics_are_those_of_the_table() -> None:
    from train_ledger.fields import FIELDS

    known = {field.metric for field in FIELDS.values()}
    assert {name for name in metrics_named(TEXT) if name.startswith("train_")} <= known
