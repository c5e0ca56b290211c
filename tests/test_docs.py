"""The pages say what is true."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from train_ledger.config import Config

ROOT = Path(__file__).parents[1]
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", CONFIGURATION, re.MULTILINE))
TABLES = {f.name: f.default_factory() for f in dataclasses.fields(Config) if callable(f.default_factory)}


@pytest.mark.parametrize("table", sorted(set(TABLES) - {"prometheus", "dcgm"}))
def test_every_key_is_documented_with_its_default(table):
    for field in dataclasses.fields(TABLES[table]):
        value = getattr(TABLES[table], field.name)
        whole = isinstance(value, float) and value.is_integer()
        shown = "none" if value is None else json.dumps(int(value) if whole else value)
        assert ROWS[field.name] == shown, f"[{table}] {field.name}"


def test_no_key_is_documented_that_is_not_there():
    known = {field.name for table in TABLES.values() for field in dataclasses.fields(table)}
    assert set(ROWS) <= known


def test_every_verb_of_the_readme_is_one():
    from train_ledger.cli.command_line import app

    verbs = {command.name or command.callback.__name__ for command in app.registered_commands}
    named = set(re.findall(r"^\| `(\w+)[ `]", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named - {"drill"} == verbs
