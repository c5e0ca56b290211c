"""The pages say what is true."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from train_ledger.config import Config

ROOT = Path(__file__).parents[1]
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
SECTIONS = re.findall(r"^## \[(\w+)\]\n(.*?)(?=^## |\Z)", CONFIGURATION, re.MULTILINE | re.DOTALL)
ROWS = {name: dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE)) for name, text in SECTIONS}
TABLES = {f.name: f.default_factory() for f in dataclasses.fields(Config) if callable(f.default_factory)}


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_key_is_documented_with_its_default(table):
    for field in dataclasses.fields(TABLES[table]):
        value = getattr(TABLES[table], field.name)
        whole = isinstance(value, float) and value.is_integer()
        shown = "none" if value is None else json.dumps(int(value) if whole else value)
        assert ROWS[table][field.name] == shown, f"[{table}] {field.name}"


def test_no_key_is_documented_that_is_not_there():
    known = {name: {field.name for field in dataclasses.fields(table)} for name, table in TABLES.items()}
    assert {name: set(rows) for name, rows in ROWS.items()} == known


def test_every_verb_of_the_readme_is_one():
    from train_ledger.cli.command_line import app

    verbs = {command.name or command.callback.__name__ for command in app.registered_commands}
    named = set(re.findall(r"^\| `(\w+)[ `]", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named - {"drill", "trace"} == verbs


def test_the_chinese_readme_has_the_same_verbs():
    rows = [
        re.findall(r"^\| (`.*?`(?:[,、] ?`.*?`)*) \|", (ROOT / name).read_text(), re.MULTILINE)
        for name in ("README.md", "README.zh-CN.md")
    ]
    assert rows[0] == [row.replace("、", ", ") for row in rows[1]]


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_links_of_the_readme_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text()):
        assert "://" in target or (ROOT / target).exists(), target
