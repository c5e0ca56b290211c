"""The draft that the review meeting starts from, as it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from train_ledger.cli import app
from train_ledger.ledger import journal


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two incidents in its journal."""
    book = journal.Journal(tmp_path / "ledger" / "journal.jsonl")
    for number, name in enumerate(["i-1", "i-2"]):
        opened = {"t": 1_800_000_000.0 + number, "kind": "incident_opened", "incident": name}
        book.append({**opened, "alert": "TrainingStepStalled"})
    book.close()
    return tmp_path


def _postmortem(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["postmortem", *map(str, arguments)], catch_exceptions=False)


def test_the_latest_incident_if_none_is_named(run: Path) -> None:
    told = _postmortem(run)
    assert told.exit_code == 0
    assert told.stdout.startswith("# ")
    assert "incident i-2." in told.stdout


def test_for_a_script(run: Path) -> None:
    told = json.loads(_postmortem(run, "--json").stdout)
    assert (told["schema"], told["incident"]) == (1, "i-2")
    assert told["markdown"].startswith("# ")
    assert json.loads(_postmortem(run, "--incident", "i-1", "--json").stdout)["incident"] == "i-1"


def test_into_a_file(run: Path) -> None:
    told = _postmortem(run, "--incident", "i-1", "--output", run / "draft.md")
    assert (told.exit_code, told.stdout) == (0, "")
    assert "incident i-1." in (run / "draft.md").read_text()


def test_an_incident_that_is_not_there(run: Path) -> None:
    told = _postmortem(run, "--incident", "i-9")
    assert told.exit_code == 2
    assert "i-1, i-2" in told.stderr
